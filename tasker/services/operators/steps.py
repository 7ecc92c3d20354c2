"""Operator actions on single steps: reset, resolve without a result, complete with a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.db.sql_files import query
from tasker.engine.answers import OperatorAnswer, RetryAnswer
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.engine.states.step import StepState
from tasker.engine.states.step_changes import CHANGES
from tasker.engine.task_graph import plan_growth
from tasker.errors import IllegalTransition, StateMachineError, StepNotFound
from tasker.errors.remedies import remedy, see
from tasker.handlers.claims import Verdict
from tasker.json_values import encode
from tasker.services.audit import audited
from tasker.services.tasks.read import checked, not_found
from tasker.views.steps import RetriedSteps

MAX_REPLANS = 20


class Steps:
    """Operator actions on steps.

    All methods raise `StepNotFound`, and `StateMachineError` if the step's state does not allow the action. A decision
    or batchable step that an operator completes or resolves expands like one that ran.
    """

    def __init__(self, engine: Engine, plans: PlanStore) -> None:
        self._engine, self._plans = engine, plans

    @audited("App.steps.reset")
    async def reset(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        """Reset a step in `error` so that it runs again, with attempts counted from zero; inputs and checkpoint
        stay."""
        await self._operate(task_uuid, step, {"kind": "reset", "n": {"actor": actor, "reason": reason}})

    @audited("App.steps.retry")
    async def retry(self, task_uuid: str, *, actor: str, reason: str) -> RetriedSteps:
        """Reset every step in `error` in one transaction, so that the task continues.

        Raises `TaskNotFound`, and `StateMachineError` for a task that was cancelled.
        """
        args = {"task": checked(task_uuid), "n": {"actor": actor, "reason": reason}}
        answer = await self._engine.call_typed("retry", args, RetryAnswer)
        if answer.state is None:
            raise not_found(task_uuid)
        if answer.state == "cancelled":
            raise StateMachineError(f"task {task_uuid} is cancelled: its steps cannot run again")
        return RetriedSteps(tuple(answer.reset), tuple(answer.left))

    @audited("App.steps.resolve")
    async def resolve(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        """Mark a step as resolved without a result; the steps that depend on it continue."""
        await self._settle(task_uuid, step, {"kind": "resolve", "n": {"actor": actor, "reason": reason}}, None)

    @audited("App.steps.complete")
    async def complete(
        self,
        task_uuid: str,
        step: str,
        result: Mapping[str, Any],
        *,
        actor: str,
        reason: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Complete a step with this result; `metadata` is stored with it.

        Raises `NotStorable`, `OutcomeError` as well.
        """
        encode(dict(result))
        encode(dict(metadata or {}))
        item = {"kind": "complete", "n": {"actor": actor, "reason": reason}, "r": dict(result)}
        if metadata:
            item["m"] = dict(metadata)
        await self._settle(task_uuid, step, item, result)

    async def _settle(
        self, task_uuid: str, step: str, item: Mapping[str, Any], result: Mapping[str, Any] | None
    ) -> None:
        for _ in range(MAX_REPLANS):
            if await self._operate(task_uuid, step, {**item, **await self._growth(task_uuid, step, result)}):
                return
        raise StateMachineError(f"the graph of task {task_uuid} changed during every attempt; try again")

    async def _growth(self, task_uuid: str, step: str, result: Mapping[str, Any] | None) -> dict[str, Any]:
        rows = await self._engine.connection.execute(
            query("tasks", "template_step"), {"task": checked(task_uuid), "step": step}
        )
        if not rows:
            raise StepNotFound(f"task {task_uuid} has no step {step!r}", hint=see("tasker task show"))
        plan = await self._plans.get(rows[0][0])
        template_step = plan.steps[rows[0][1]]
        if not template_step.type.expands:
            return {}
        growth = await plan_growth(self._engine, plan, task_uuid, step, result)
        return {"gv": growth.version, **({"x": growth.steps} if growth.steps else {})}

    async def _operate(self, task_uuid: str, step: str, item: Mapping[str, Any]) -> bool:
        """Send the action to the engine. Return False if the graph has changed since it was read."""
        args = {"task": checked(task_uuid), "step": step, **item}
        answer = await self._engine.call_typed("operator_change", args, OperatorAnswer)
        if answer.state is None:
            raise StepNotFound(f"task {task_uuid} has no step {step!r}", hint=see("tasker task show"))
        if answer.verdict is Verdict.SETTLED:
            raise StateMachineError(
                f"task {task_uuid} went on without step {step!r}: {item['kind']} is not possible",
                hint=remedy("run the step again with everything below it: {}", "tasker task rerun"),
            )
        if answer.verdict is Verdict.UNDONE:
            raise StateMachineError(
                f"the effects of task {task_uuid} are undone, or are being undone: {item['kind']} of step {step!r} is "
                "not possible",
                hint=remedy("run it again with everything whose effect was undone: {}", "tasker task rerun"),
            )
        if answer.verdict not in (None, Verdict.REPLAN):
            raise _not_possible(step, StepState(answer.state), item["kind"])
        return answer.verdict is None


def _not_possible(step: str, state: StepState, kind: str) -> StateMachineError:
    """Return the error for a refused action: the step's state does not allow it, or its task has ended."""
    legal = [name for name, move in CHANGES.items() if move.reopens and state in move.by_state]
    if kind in legal:
        return StateMachineError(f"step {step!r} is {state}: {kind} is not possible", hint="its task has ended")
    return IllegalTransition(
        f"step {step!r} is {state}: {kind} is not possible",
        hint=f"possible here: {', '.join(legal)}" if legal else f"'{state}' is final",
        context={"state": str(state), "legal": legal},
    )
