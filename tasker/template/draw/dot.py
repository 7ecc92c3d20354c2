"""Drawing of a plan in Graphviz format. Steps created at run time are dashed."""

from __future__ import annotations

from tasker.contracts.plan import Plan, StepPlan


def draw_dot(plan: Plan) -> str:
    """Return the directed graph in Graphviz format."""
    nodes = [f'  "{s.name}" [shape={s.type.traits.dot}, style={_style(s)}];' for s in plan.steps]
    edges = [f'  "{parent}" -> "{s.name}" [style={_style(s)}];' for s in plan.steps for parent in s.depends_on]
    return "\n".join([f'digraph "{plan.name}" {{', "  rankdir=TB;", *nodes, *edges, "}"])


def _style(step: StepPlan) -> str:
    return "solid" if step.static else "dashed"
