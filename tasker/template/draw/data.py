"""Graph of a plan as plain data."""

from __future__ import annotations

from typing import Any

from tasker.contracts.plan import Plan


def graph_data(plan: Plan) -> dict[str, Any]:
    """Return `nodes` with `name`, `type`, `level` (longest distance from a root) and `static`, and their `edges`."""
    nodes = [
        {"name": step.name, "type": str(step.type), "level": step.level, "static": step.static} for step in plan.steps
    ]
    edges = [{"from_step": parent, "to_step": step.name} for step in plan.steps for parent in step.depends_on]
    return {"nodes": nodes, "edges": edges}
