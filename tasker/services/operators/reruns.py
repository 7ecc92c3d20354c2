"""Rerun of a task from a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.sql_files import query
from tasker.engine.answers import RerunAnswer
from tasker.engine.calls import Engine
from tasker.engine.expansion.choices import DEFAULT_LIMITS, ExpansionLimits
from tasker.engine.expansion.graph import Existing, ExistingStep
from tasker.engine.expansion.planner import expand, expand_resolved
from tasker.engine.plans import PlanStore
from tasker.engine.task_graph import read_graph
from tasker.errors import StateMachineError, StepNotFound
from tasker.errors.remedies import see
from tasker.services.audit import audited
from tasker.services.operators.changed_input import changed
from tasker.services.submission.submit import Submission, Submitter
from tasker.services.tasks.read import checked, not_found
from tasker.template.plan import Plan
from tasker.template.step_types import StepType
from tasker.views.steps import StartedRerun
from tasker.views.tasks import TaskReport


@dataclass(frozen=True, slots=True)
class RerunScope:
    """Names of the steps that run again, and of those that are dropped because their creators decide again.

    All other steps are done, and their results are reused.
    """

    again: frozenset[str]
    dropped: frozenset[str]


def rerun_from(
    plan: Plan, start: str, existing: Existing, decided: Mapping[str, Any], limits: ExpansionLimits = DEFAULT_LIMITS
) -> RerunScope:
    """Return the scope of a rerun from the step `start`.

    `start` runs again, with all steps below it and all steps that are not done. So do steps that failed or were skipped
    while the task went on, and those whose effect was undone, with all steps below them. `decided` are the results of
    the done decision and batchable steps, None for one that an operator resolved. A step is dropped if only steps that
    run again create it.
    """
    template_step = next(step.template_step for step in existing if step.name == start)
    gone = {step.template_step for step in existing if step.settled is not None}
    undone = {plan.by_name[step.template_step].undoes for step in existing if not step.open}
    gone.update(name for name in undone if name is not None)
    below = frozenset(plan.below.reached([template_step, *gone]))
    again = {
        step.name
        for step in existing
        if step.open
        or step.settled is not None
        or step.name == start
        or step.template_step in below
        or step.template_step in gone
    }
    retained = _derived(plan, {name: result for name, result in decided.items() if name not in again}, limits)
    dropped = frozenset(again - retained)
    return RerunScope(frozenset(again - dropped), dropped)


def _derived(plan: Plan, decided: Mapping[str, Any], limits: ExpansionLimits) -> frozenset[str]:
    """Return the steps of a task in which exactly these steps have decided, by repeating the expansions in order."""
    graph = {step.name: ExistingStep(step.name, step.name, True) for step in plan.steps if step.static}
    for name in (step.name for step in plan.steps if step.name in decided):
        existing, result = tuple(graph.values()), decided[name]
        created = (
            expand_resolved(plan, name, existing, limits)
            if result is None
            else expand(plan, name, result, existing, limits)
        )
        graph[name] = ExistingStep(name, name, False)
        graph.update({step.name: ExistingStep(step.name, step.template_step, True) for step in created.steps})
    return frozenset(graph)


MAX_REPLANS = 20
DECIDING = [type_.value for type_ in StepType if type_.expands]


@dataclass(frozen=True, slots=True)
class _Former:
    task_uuid: str
    plan: Plan
    priority: int
    context: Mapping[str, Any]
    decided: Mapping[str, Any]


def where_to_begin(report: TaskReport) -> str:
    """Return the default step from which to rerun a task: the first failed one, or the first step if none failed."""
    failed = [*report.failed_steps, *report.missing_steps]
    return next((step.name for step in failed), next(iter(report.steps)))


class Reruns:
    """Reruns of tasks. The drafts of `submitter` validate the new tasks as for a submission."""

    def __init__(self, engine: Engine, plans: PlanStore, submitter: Submitter) -> None:
        self._engine, self._plans, self._drafts = engine, plans, submitter.drafts

    @audited("App.reruns.start")
    async def start(
        self,
        task_uuid: str,
        step: str,
        *,
        actor: str,
        reason: str,
        context: Mapping[str, Any] | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> StartedRerun:
        """Start a new task of the same template that runs `step`, the steps below it, and all steps that are not done.

        The results of all other steps are reused; steps created by decision and batchable steps that run again are
        decided anew. The former task is not changed, in any state. `context` is the new task's input; None uses
        the former one. `changes` sets single fields of it, by their paths (`address.zip`). Reused steps do not see
        another input. Raises `TaskNotFound`, `StepNotFound`, `InputInvalid`, `NotStorable`, and `UsageError` for a path
        into a value that is not an object.
        """
        former, task_id = await self._former(task_uuid), self._drafts.new_id()
        request = Submission(
            changed(former.context if context is None else context, changes or {}),
            former.priority,
            idempotency_key=f"rerun {task_id}",
            initiator=actor,
            source_system="tasker task rerun",
            reason=reason,
        )
        draft = self._drafts.draft(former.plan, request, task_id)
        note = {"rerun_of": former.task_uuid, "from": step, "actor": actor, "reason": reason}
        for _ in range(MAX_REPLANS):
            args = {"task": former.task_uuid, "draft": draft.item, "n": note, **await self._planned(former, step)}
            answer = await self._engine.call_typed("rerun", args, RerunAnswer)
            if answer.created:
                return StartedRerun(draft.task_uuid, answer.steps, answer.reused)
            former = await self._former(task_uuid)
        raise StateMachineError(f"the graph of task {task_uuid} changed during every attempt; try again")

    async def _former(self, task_uuid: str) -> _Former:
        task = checked(task_uuid)
        args = {"task": task, "types": DECIDING}
        rows = await self._engine.connection.execute(query("tasks", "to_rerun"), args)
        if not rows:
            raise not_found(task_uuid)
        template, priority, context, decided = rows[0]
        return _Former(task, await self._plans.get(template), priority, context, decided)

    async def _planned(self, former: _Former, step: str) -> dict[str, Any]:
        version, existing = await read_graph(self._engine, former.plan, former.task_uuid)
        if step not in {existed.name for existed in existing}:
            raise StepNotFound(f"task {former.task_uuid} has no step {step!r}", hint=see("tasker task show"))
        rerun: RerunScope = rerun_from(former.plan, step, existing, former.decided, self._engine.rules.limits)
        return {"gv": version, "again": sorted(rerun.again), "dropped": sorted(rerun.dropped)}
