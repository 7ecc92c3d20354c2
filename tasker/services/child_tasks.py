"""Child tasks: planned from the expressions of their step, started in slices, and counted when they end.

What is to be done is in indexes (`tasker.child_work_v1`), so any process can go on after a crash, and any number may do
it at the same time. Nothing is read twice: the list is evaluated once, and an end is read when it is counted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import DataRefused
from tasker.engine.answers import GatherAnswer, StartAnswer
from tasker.engine.calls import Engine
from tasker.engine.changes import StepChange
from tasker.engine.exchange import CLAIM_BYTES, CompletingWorker, OnAdvanced, inputs_of
from tasker.engine.identity import child_identity
from tasker.engine.plans import PlanStore
from tasker.engine.retry import fingerprint
from tasker.errors import (
    LockTimeout,
    PlanUnreadable,
    StatementTimeout,
    TaskerError,
    TemplateNotFound,
    UsageError,
)
from tasker.services.child_values import ChildOutputs, Unstartable, child_inputs, encoded_input, tolerated
from tasker.services.submission.lost_commit import log_created_tasks
from tasker.services.submission.submit import Draft, DraftFactory, Submission
from tasker.template.plan import Plan

FAN_OUTS = 20
"""Steps whose children one pass looks at."""
SLICE = 500
"""Children that one transaction starts, ends that it counts, and items that it adds."""
ROUNDS = 20
"""Slices of one step in a row; the next pass continues."""
PAUSED_MS = 2_000
"""Time until children of a paused task are looked at again."""
SKIPPED_MS = 10_000
"""The same after a failure, such as a lock that another transaction holds for long."""
_log = logging.getLogger("tasker.orchestration")


@dataclass(frozen=True, slots=True)
class ChildWork:
    """Rest of a pass, for its caller: failures to write (with a plan, if their tasks go on), and whether there may be
    more to do at once."""

    failures: Sequence[StepChange] = ()
    more: bool = False
    busy: bool = False
    """True if another transaction has a step or its task locked."""


class ChildTasks:
    """Start and count of child tasks. `on_advanced` gets the answers of the engine."""

    def __init__(
        self, engine: Engine, plans: PlanStore, drafts: DraftFactory, on_advanced: OnAdvanced = lambda _: None
    ) -> None:
        self._engine, self._plans, self._drafts, self._on_advanced = engine, plans, drafts, on_advanced
        self._skipped: dict[tuple[str, int], float] = {}

    async def look(self, caller: CompletingWorker) -> ChildWork:
        """Do what is due; what cannot be done now stops nothing else, and is left to a later pass.

        Raises `DatabaseError`.
        """
        work = await self._next_work()
        failures: list[StepChange] = []
        more = busy = progress = False
        for wait in work["unplanned"]:
            try:
                await self._open(wait)
                more = True
            except Unstartable as error:
                failures.append(failed(wait, error))
            except (LockTimeout, StatementTimeout, PlanUnreadable, DataRefused) as error:
                _log.warning("children_not_planned step=%s task=%s reason=%s", wait["step"], wait["task"], error)
                self._skip(wait)
        for stray in work["stray"]:
            await self._engine.call_typed("gather", {**caller.args(0), **stray, "ends": []}, GatherAnswer)
        for fan_out in work["fan_outs"]:
            try:
                rest = await self._advance(fan_out, caller)
            except (LockTimeout, StatementTimeout, PlanUnreadable, DataRefused) as error:
                _log.warning("children_skipped step=%s reason=%s", fan_out["step"], error)
                self._skip(fan_out)
                await self._engine.read("defer_fan_out", {**fan_out, "ms": SKIPPED_MS})
            else:
                progress = True
                failures += rest.failures
                more, busy = more or rest.more, busy or rest.busy
        # without progress the same steps would be read again at once
        return ChildWork(failures, more or (progress and bool(work["more"])), busy)

    async def _next_work(self) -> dict[str, Any]:
        """Read what is to be done, without the steps that this process has just skipped: read again and again, they
        would keep it from all others."""
        now = perf_counter()
        self._skipped = {step: until for step, until in self._skipped.items() if until > now}
        work = await self._engine.read("child_work", {"limit": FAN_OUTS + len(self._skipped)})
        for kind in ("unplanned", "fan_outs"):
            work[kind] = [item for item in work[kind] if (item["step"], item["token"]) not in self._skipped]
        return work

    def _skip(self, item: Mapping[str, Any]) -> None:
        self._skipped[item["step"], item["token"]] = perf_counter() + SKIPPED_MS / 1000

    async def _open(self, wait: Mapping[str, Any]) -> None:
        """Plan the children of a step: their template, their number and the input of each. Raises `Unstartable`."""
        plan = await self._plans.get(wait["template"])
        step = plan.steps[wait["ordinal"]]
        spec = step.wait or {}
        try:
            registered = await self._plans.find(
                spec["namespace"] or plan.namespace, spec["template"], spec["version"] or None
            )
        except (TemplateNotFound, UsageError) as error:
            raise Unstartable("child_template_not_found", error.message) from error
        answer = await self._engine.read("inputs", {"steps": [wait["step"]], "max_bytes": CLAIM_BYTES})
        given = inputs_of(answer).get(wait["task"])
        if given is None or answer.get("too_large"):
            raise Unstartable("inputs_too_large", "the results above the step are too large to be read together")
        total = 0
        results = {name: result for name, (_, result) in given.results.items()}
        ids = {"task_uuid": wait["task"], "correlation_id": given.correlation_id}
        items = enumerate(child_inputs(plan, step, registered.plan, given.context, results, **ids))
        key = {"step": wait["step"], "token": wait["token"]}
        limit = self._engine.rules.execution.context_limit_bytes
        while slice_ := [[index, encoded_input(index, input_, limit)] for index, input_ in islice(items, SLICE)]:
            await self._engine.read("add_fan_out_items", {**key, "items": slice_})
            total += len(slice_)
        execution = self._engine.rules.execution
        opened = await self._engine.read(
            "open_fan_out",
            {
                **key,
                "task": wait["task"],
                "template": registered.template_id,
                "is_list": spec["for_each"] is not None,
                "collects": spec["collect"] == "results",
                "total": total,
                "max_parallel": spec["max_parallel"],
                "tolerated": tolerated(spec, total),
                "max_depth": execution.max_task_depth,
                "max_descendants": execution.max_task_descendants,
            },
        )
        if depth := opened.get("too_deep"):
            most = execution.max_task_depth
            message = f"the children would be on level {depth} below the first task, the limit is {most}"
            raise Unstartable("too_deep", f"{message}: raise common.execution.max_task_depth, or start less")
        if number := opened.get("too_many"):
            message = (
                f"the first task would have {number} descendants, at most {execution.max_task_descendants} are possible"
            )
            raise Unstartable(
                "too_many_children", f"{message}: raise common.execution.max_task_descendants, or start less"
            )

    async def _advance(self, fan_out: Mapping[str, Any], caller: CompletingWorker) -> ChildWork:
        """Count ends and start children of one step until nothing is left."""
        for _ in range(ROUNDS):
            state = await self._engine.read("fan_out", {**fan_out, "items": SLICE, "ends": SLICE})
            if not state:
                return ChildWork()
            if state["ends"] or state["finished"]:
                answer = await self._gather(fan_out, state, caller)
                if answer.busy or answer.unplanned:
                    return ChildWork(answer.unplanned, busy=answer.busy)
            elif not state["items"]:
                if state["paused"]:
                    await self._engine.read("defer_fan_out", {**fan_out, "ms": PAUSED_MS})
                return ChildWork()
            elif not await self._start(fan_out, state):
                return ChildWork(busy=True)
        return ChildWork(more=True)

    async def _gather(
        self, fan_out: Mapping[str, Any], state: Mapping[str, Any], caller: CompletingWorker
    ) -> GatherAnswer:
        outputs = ChildOutputs(await self._plans.get(state["child_template"]), await self._output_of(state))
        succeeded = [end["child"] for end in state["ends"] if end["ok"]]
        results: Mapping[str, Any] = {}
        if succeeded:
            args = {"tasks": succeeded, "ordinals": outputs.ordinals, "context": outputs.reads_input}
            results = await self._engine.read("child_results", {**args, "max_bytes": CLAIM_BYTES})
        ends = []
        for end in state["ends"]:
            if not end["ok"]:
                ends.append({"id": end["id"], "e": end["error"] or {"state": "error"}})
            elif end["child"] in results:
                ends.append({"id": end["id"], **outputs.item(end["child"], results[end["child"]])})
        answer = await self._engine.call_typed("gather", {**caller.args(0), **fan_out, "ends": ends}, GatherAnswer)
        self._on_advanced(answer)
        return answer

    async def _output_of(self, state: Mapping[str, Any]) -> str | None:
        plan = await self._plans.get(state["template"])
        output: str | None = (plan.steps[state["ordinal"]].wait or {})["output"]
        return output

    async def _start(self, fan_out: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
        """Start the next children; return whether that was written."""
        began = perf_counter()
        child = await self._plans.get(state["child_template"])
        drafts: list[Draft] = []
        items: list[dict[str, Any]] = []
        for index, input_ in state["items"]:
            try:
                draft = self._draft(child, fan_out, state, index, input_)
            except TaskerError as error:
                items.append({"i": index, "e": {"error_type": error.error_type, "message": error.message[:2000]}})
            else:
                drafts.append(draft)
                items.append({"i": index, "id": draft.task_uuid})
        args = self._drafts.args(state["child_template"], drafts)
        answer = await self._engine.call_typed("start_children", {**args, **fan_out, "items": items}, StartAnswer)
        log_created_tasks(self._engine.listeners, child, drafts, answer, began)
        self._on_advanced(answer)
        return not answer.moved

    def _draft(
        self, plan: Plan, fan_out: Mapping[str, Any], state: Mapping[str, Any], index: int, input_: Mapping[str, Any]
    ) -> Draft:
        """Return the child of an item. Raises the errors of a submission."""
        step, token, trace = fan_out["step"], fan_out["token"], state["trace"] or {}
        request = Submission(
            input_,
            priority=state["priority"],
            idempotency_key=f"{step}/{token}/{index}",
            parent_correlation_id=state["correlation"],
            initiator=f"step:{state['namespace']}/{state['parent_template']}/{state['name']}",
            reason=f"child {index} of step {state['name']} of task {state['task']}",
            tenant=state["tenant"],
            traceparent=trace.get("traceparent"),
            tracestate=trace.get("tracestate"),
        )
        draft = self._drafts.draft(plan, request)
        identity = child_identity(step, token, index)
        item = {**draft.item, "identity": identity, "parent": {"step": step, "token": token, "index": index}}
        if item.pop("debounce", None):  # a child is one task, which begins at once
            del item["delay_ms"]
        if (left := state.get("left_ms")) is not None and left < item.get("deadline_ms", float("inf")):
            item.pop("deadline_ms", None)
            item["deadline"] = state["deadline"]
        return replace(draft, identity=identity, item=item)


def failed(wait: Mapping[str, Any], error: Unstartable) -> StepChange:
    """Return the failure of a step that could not start its children."""
    fields = {"message": error.message, "error_type": error.error_type, "retryable": False, "attempt": 1}
    return {
        "s": wait["step"],
        "t": wait["task"],
        "kind": "fail",
        "k": wait["token"],
        "n": {"wait": "failed"},
        "e": {**fields, "fingerprint": fingerprint(fields)},
    }
