"""Failures after which a task goes on, as the engine accepts them: with the plan of what follows."""

from __future__ import annotations

from typing import Any

from tasker.engine.calls import Engine
from tasker.engine.changes import StepChange
from tasker.engine.expansion.failures import plan_failure
from tasker.engine.expansion.graph import ExistingStep, Expansion
from tasker.engine.plans import PlanStore
from tasker.engine.states.step import SATISFYING, StepState
from tasker.engine.task_graph import new_step_rows
from tasker.handlers.claims import Verdict
from tasker.template.failure_words import SKIPPED
from tasker.template.plan import Plan

FOLLOWS = "upstream_failed"
"""Reason of a skipped step in its history."""


def needs_plan(change: StepChange, verdict: Verdict | None) -> bool:
    """Return whether the engine refused this failure because it has no plan.

    The engine makes a failure of a handler's request to be called again later, if it has asked too often.
    """
    return change["kind"] in ("fail", "snooze") and "gv" not in change and verdict is Verdict.REPLAN


async def with_plan(engine: Engine, plans: PlanStore, change: StepChange) -> list[StepChange]:
    """Return the failure with its plan, and the changes of the steps that are skipped: to be written as one.

    Without the task or the step, the failure alone, which the engine refuses. Raises `PlanUnreadable` if only a newer
    release can read the template.
    """
    graph = await engine.read("failure_graph", {"task": change["t"]})
    steps = {uuid: row for uuid, *row in graph["steps"]} if graph else {}
    if change["s"] not in steps:
        return [change]
    plan = await plans.get(graph["template"])
    failed, *_ = steps[change["s"]]
    outcome = plan_failure(plan, failed, [_existing(plan, *row) for row in steps.values()], _parents(plan, graph))
    planned: StepChange = {**change, "gv": graph["version"]}
    if outcome.settled is not None:
        planned["st"] = outcome.settled
    if outcome.steps:
        planned["x"] = new_step_rows(plan, Expansion(outcome.steps))
    ids = {name: uuid for uuid, (name, *_) in steps.items()}
    note = {"reason": FOLLOWS, "because": failed}
    skips: list[StepChange] = [
        {"s": ids[name], "t": change["t"], "kind": "skip", "st": SKIPPED, "n": note} for name in outcome.skipped
    ]
    return [planned, *skips]


async def fail_with_plan(engine: Engine, change: StepChange, args: dict[str, Any]) -> None:
    """Plan and write a failure once; if the graph changes meanwhile, the step is as it was."""
    changes = await with_plan(engine, PlanStore(engine.connection), change)
    await engine.call("advance", {**args, "items": changes, "atomic": True})


def _existing(plan: Plan, name: str, ordinal: int, state: str, settled: str | None) -> ExistingStep:
    is_open = settled is None and state not in SATISFYING
    return ExistingStep(name, plan.steps[ordinal].name, is_open, settled, state == StepState.PENDING)


def _parents(plan: Plan, graph: dict[str, Any]) -> dict[str, list[str]]:
    """Return the parents of each step: those of its template, and those that it got while the task ran."""
    names = {uuid: name for uuid, name, *_ in graph["steps"]}
    static = {name for _, name, ordinal, *_ in graph["steps"] if plan.steps[ordinal].static}
    parents = {name: [up for up in plan.by_name[name].depends_on if up in static] for name in static}
    for above, below in graph["edges"]:
        parents.setdefault(names[below], []).append(names[above])
    return parents
