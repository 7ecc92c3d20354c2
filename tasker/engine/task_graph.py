"""Graph of a running task for the planner, and the planner's answer for the engine (rule 8)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine
from tasker.engine.changes import ExpansionRecord, NewSteps
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

    def expanded(self, step: str, growth: VersionedGraph, plan: Plan) -> TaskGraph:
        """Return the graph behind an expansion by `step`."""
        steps = [replace(existing, open=existing.open and existing.name != step) for existing in self.steps]
        return TaskGraph(self.version + 1, [*steps, *_created(plan, growth.steps, ())])


Growths = Mapping[str, ExpansionRecord]


def known_graph(plan: Plan, step: str, growths: Growths) -> TaskGraph | None:
    """Return the graph that a task has when `step` completes, or None if a step above it decided elsewhere.

    It follows from the plan and the known expansions. The graph has another version if other processes expand it at
    the same time, or if it is the graph of a rerun.
    """
    records = sorted(growths.values(), key=lambda record: record.version)
    if [record.version for record in records] != list(range(len(records))):
        return None
    steps = [
        ExistingStep(step_plan.name, step_plan.name, step_plan.name not in growths)
        for step_plan in plan.steps
        if step_plan.static
    ]
    steps += [existing for record in records for existing in _created(plan, record.steps, growths)]
    above = plan.above.reached([step])
    decided = not any(
        existing.open and existing.template_step in above and plan.by_name[existing.template_step].type.expands
        for existing in steps
        if existing.name != step
    )
    return TaskGraph(len(records), steps) if decided else None


def _created(plan: Plan, rows: NewSteps, decided: Container[str]) -> list[ExistingStep]:
    return [ExistingStep(row["name"], plan.steps[row["ordinal"]].name, row["name"] not in decided) for row in rows]


def surely_known_graph(plan: Plan, step: str, growths: Growths | None) -> TaskGraph | None:
    """Return the graph as `known_graph` does, or None if a step beside `step` may have decided elsewhere."""
    if plan.first_expanding != step and not growths:
        return None
    graph = known_graph(plan, step, growths or {})
    below = plan.below.reached([step])
    if graph is None or any(
        existing.open and existing.template_step not in below and plan.by_name[existing.template_step].type.expands
        for existing in graph.steps
        if existing.name != step
    ):
        return None
    return graph


def step_number(plan: Plan, step: str, growths: Growths) -> int | None:
    """Return the number of an existing step in its task (`tasker.step_uuid`), or None if the step is not known."""
    if (step_plan := plan.by_name[step]).static:
        return step_plan.ordinal + 1
    number = len(plan.steps)
    for record in sorted(growths.values(), key=lambda record: record.version):
        for row in record.steps:
            number += 1
            if row["name"] == step:
                return number
    return None


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
    graph = known or await read_graph(engine, plan, task_uuid)
    return growth_of(engine, plan, step, result, graph)


def growth_of(
    engine: Engine, plan: Plan, step: str, result: Mapping[str, Any] | None, graph: TaskGraph
) -> VersionedGraph:
    """Plan the steps that `step` creates in this graph, as `plan_growth` does."""
    limits = engine.rules.limits
    if result is None:
        expansion = expand_resolved(plan, step, graph.steps, limits)
    else:
        expansion = expand(plan, step, result, graph.steps, limits)
    return VersionedGraph(graph.version, new_step_rows(plan, expansion), expansion.warnings)


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
