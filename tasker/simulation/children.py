"""Simulated child tasks: what a step with `type: task` comes to, without a mock of its own."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.engine.states.task import TaskState
from tasker.errors import UsageError
from tasker.handlers.claims import Failure
from tasker.services.child_values import ChildOutputs, Unstartable, child_inputs, tolerated
from tasker.simulation.steps import AttemptOutcome, SimulatedStep
from tasker.template.plan import Plan

if TYPE_CHECKING:
    from tasker.simulation.run import SimulatedTask

CHILD = "00000000-0000-7000-8000-{:012x}"
"""Identifiers of simulated children, from 1."""
RunChild = Callable[[Plan, Mapping[str, Any]], "SimulatedTask"]


@dataclass(frozen=True, slots=True)
class SimulatedChild:
    """End of one child: its output, or why it has none; and its duration."""

    output: Any = None
    problem: str | None = None
    takes_ms: int = 0


def child_plan(plan: Plan, step: SimulatedStep, known: Sequence[Plan]) -> Plan:
    """Return the template of a step's children among the known ones. Raises `UsageError`."""
    wait = step.plan.wait or {}
    namespace, name, version = wait["namespace"] or plan.namespace, wait["template"], wait["version"]
    found = [each for each in known if (each.namespace, each.name) == (namespace, name)]
    if not (matching := [each for each in found if version in (None, each.version)]):
        raise UsageError(
            f"the step {step.name!r} starts tasks of {namespace}/{name}, which is not in the same file or folder",
            hint=f"mock what the step returns: `{step.name}: {{output: ...}}`",
        )
    return matching[-1]


def children_outcome(
    task: SimulatedTask, step: SimulatedStep, child: Plan, ids: Mapping[str, str], run: RunChild
) -> AttemptOutcome:
    """Return what a step comes to whose children are simulated, as the engine would end it."""
    wait = step.plan.wait or {}
    try:
        inputs = [*child_inputs(task.plan, step.plan, child, task.values, task.results_above(step), **ids)]
    except Unstartable as error:
        return AttemptOutcome(Failure(error.message, error.error_type, retryable=False))
    allowed = tolerated(wait, len(inputs))
    outputs, children = ChildOutputs(child, wait["output"]), list[SimulatedChild]()
    for values in inputs:
        children.append(_end(run(child, values), outputs, len(children)))
        if sum(each.problem is not None for each in children) > allowed:
            break
    takes = _duration([each.takes_ms for each in children], wait["max_parallel"])
    failed = [index for index, each in enumerate(children) if each.problem is not None]
    if len(failed) > allowed:
        several = f"{len(failed)} of {len(inputs)} child tasks failed, {allowed} tolerated; the first: "
        type_ = "too_many_children_failed" if wait["for_each"] else "child_task_failed"
        message = (several if wait["for_each"] else "") + str(children[failed[0]].problem)
        return AttemptOutcome(Failure(message, type_, retryable=False), takes)
    if not wait["for_each"]:
        return AttemptOutcome({"task_uuid": CHILD.format(1), "output": children[0].output}, takes)
    result = {"total": len(children), "succeeded": len(children) - len(failed), "failed": failed}
    if wait["collect"] == "results":
        result["results"] = [each.output for each in children]
    return AttemptOutcome(result, takes)


def _end(run: SimulatedTask, outputs: ChildOutputs, index: int) -> SimulatedChild:
    name = CHILD.format(index + 1)
    if run.state is not TaskState.COMPLETE:
        failures = [(step.name, step.failures[-1]) for step in run.steps.values() if step.failures]
        why = f": step {failures[-1][0]}: {failures[-1][1].failure.message}" if failures else ""
        return SimulatedChild(problem=f"child task {name} ended in {run.state}{why}", takes_ms=run.now)
    results = {step.name: step.result for step in run.steps.values() if step.result is not None}
    names = {outputs.plan.steps[ordinal].name for ordinal in outputs.ordinals}
    given = {"context": run.values, "results": {name: value for name, value in results.items() if name in names}}
    item = outputs.item(name, given)
    if "e" in item:
        return SimulatedChild(problem=f"child task {name}: {item['e']['message']}", takes_ms=run.now)
    return SimulatedChild(outputs.value(name, given), takes_ms=run.now)


def _duration(durations: Sequence[int], max_parallel: int) -> int:
    """Return the time until the last child has ended, with so many at the same time."""
    ends: list[int] = []
    for took in durations:
        began = heapq.heappop(ends) if len(ends) == max_parallel else 0
        heapq.heappush(ends, began + took)
    return max(ends, default=0)
