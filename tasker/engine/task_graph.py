"""Graph of a running task for the planner, and the planner's answer for the engine (rule 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine
from tasker.engine.expansion.graph import Existing, ExistingStep, Expansion
from tasker.engine.expansion.planner import expand, expand_resolved
from tasker.errors import TaskNotFound
from tasker.template.plan import Plan


@dataclass(frozen=True, slots=True)
class VersionedGraph:
    """Steps that completing one step creates, valid for `version` of the task's graph."""

    version: int
    steps: list[dict[str, Any]]
    warnings: tuple[str, ...]


class TaskGraph(NamedTuple):
    """Steps of a task, with the version of its graph: the engine refuses an expansion planned for another version."""

    version: int
    steps: Existing


def first_graph(plan: Plan, step: str) -> TaskGraph | None:
    """Return the graph that a task has when `step` completes, or None if it depends on other steps.

    It is derived from the plan alone. A rerun task has another version, so its graph must be read.
    """
    if plan.first_expanding != step:
        return None
    return TaskGraph(
        0, [ExistingStep(step_plan.name, step_plan.name, True) for step_plan in plan.steps if step_plan.static]
    )


async def read_graph(engine: Engine, plan: Plan, task_uuid: str) -> TaskGraph:
    """Return the current graph of the task. Raises `TaskNotFound` if the task is gone."""
    if (graph := (await engine.read("graph", {"tasks": [task_uuid]})).get(task_uuid)) is None:
        raise TaskNotFound(f"no task {task_uuid} in this database")
    settled = graph.get("settled") or {}
    steps = [
        ExistingStep(name, plan.steps[ordinal].name, is_open, settled.get(name))
        for name, ordinal, is_open in graph["steps"]
    ]
    return TaskGraph(graph["version"], steps)


async def plan_growth(
    engine: Engine,
    plan: Plan,
    task_uuid: str,
    step: str,
    result: Mapping[str, Any] | None,
    known: TaskGraph | None = None,
) -> VersionedGraph:
    """Plan the steps that `step` creates with this result; None if an operator resolved the step without a result.

    The graph is read unless it is `known`. Raises `OutcomeError` for a malformed outcome, and `TaskNotFound` if the
    task is gone.
    """
    version, existing = known or await read_graph(engine, plan, task_uuid)
    limits = engine.rules.limits
    if result is None:
        expansion = expand_resolved(plan, step, existing, limits)
    else:
        expansion = expand(plan, step, result, existing, limits)
    return VersionedGraph(version, new_step_rows(plan, expansion), expansion.warnings)


def new_step_rows(plan: Plan, expansion: Expansion) -> list[dict[str, Any]]:
    """Return the steps to create as `tasker.expand_step` takes them."""
    return [
        {
            "name": new.name,
            "ordinal": plan.by_name[new.template_step].ordinal,
            "parents": list(new.parents),
            **({"joins": list(new.joins)} if new.joins else {}),
            **({"inputs": dict(new.inputs), "batch": True} if new.inputs is not None else {}),
        }
        for new in expansion.steps
    ]
