"""The graph of a running task for the planner, and the planner's answer for the engine (rule 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.expansion.graph import ExistingStep, Expansion
from tasker.contracts.plan import Plan
from tasker.errors import TaskNotFound
from tasker.lifecycle.expansion import expand, expand_resolved
from tasker.services.engine.calls import Engine


@dataclass(frozen=True, slots=True)
class Growth:
    """The steps that completing one step creates, valid for `version` of the task's graph."""

    version: int
    steps: list[dict[str, Any]]
    warnings: tuple[str, ...]


async def plan_growth(
    engine: Engine, plan: Plan, task_uuid: str, step: str, result: Mapping[str, Any] | None
) -> Growth:
    """What the step `step` of the task decides with this result; None: it was resolved by hand, without one (C-46).

    Raises `OutcomeError` for a malformed outcome, and `TaskNotFound` where the task is gone.
    """
    if (graph := (await engine.read("graph", {"tasks": [task_uuid]})).get(task_uuid)) is None:
        raise TaskNotFound(f"no task {task_uuid} in this database")
    existing = [ExistingStep(name, plan.steps[ordinal].name, is_open) for name, ordinal, is_open in graph["steps"]]
    limits = engine.rules.limits
    if result is None:
        expansion = expand_resolved(plan, step, existing, limits)
    else:
        expansion = expand(plan, step, result, existing, limits)
    return Growth(graph["version"], _rows(plan, expansion), expansion.warnings)


def _rows(plan: Plan, expansion: Expansion) -> list[dict[str, Any]]:
    return [
        {
            "name": new.name,
            "ordinal": plan.by_name[new.template_step].ordinal,
            "parents": list(new.parents),
            **({"inputs": dict(new.inputs), "batch": True} if new.inputs is not None else {}),
        }
        for new in expansion.steps
    ]
