"""Reason why a task does not have a step of its template: a decision has not created it."""

from __future__ import annotations

from typing import Any

from tasker.engine.states.step import SATISFYING
from tasker.template.plan import Plan
from tasker.template.step_types import Creates
from tasker.views.tasks import TaskReport


def why_absent(plan: Plan, name: str, report: TaskReport) -> dict[str, Any] | None:
    """Return the group of an explanation for a step without instances, None if no decision has been made about it."""
    if name not in plan.by_name or name in report.steps:
        return None
    branch = name
    while missing := [parent for parent in plan.by_name[branch].depends_on if not _exists(plan, parent, report)]:
        branch = missing[0]
    parents = [plan.by_name[parent] for parent in plan.by_name[branch].depends_on]
    decision = next((parent for parent in parents if parent.type.creates is Creates.BRANCHES), None)
    if decision is None:
        return None
    values: dict[str, Any] = {"decision": decision.name, "branch": branch}
    step = report.steps[decision.name]
    if step.state not in SATISFYING:
        return None
    if step.decision is not None:
        values["why"] = step.decision[1]
    return {"reason": "decided_against", "count": 1, "steps": [name], "of": [name], "since": None, "values": values}


def _exists(plan: Plan, name: str, report: TaskReport) -> bool:
    if not plan.by_name[name].type.is_pattern:
        return name in report.steps
    return any(step.rpartition("_")[0] == name for step in report.steps)
