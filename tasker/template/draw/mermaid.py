"""Drawing of a plan as a Mermaid flowchart. Steps created at run time are dashed."""

from __future__ import annotations

from tasker.contracts.plan import Plan, StepPlan


def draw_mermaid(plan: Plan) -> str:
    """Return the flowchart, ready for a Markdown fence."""
    lines = ["flowchart TD", *(_node(step) for step in plan.steps)]
    lines += [_edge(plan.by_name[parent], step) for step in plan.steps for parent in step.depends_on]
    if not all(step.static for step in plan.steps):
        lines.append("    classDef dynamic stroke-dasharray: 5 5")
    return "\n".join(lines)


def _node(step: StepPlan) -> str:
    left, right = step.type.traits.mermaid
    label = f"{step.name} x N" if step.type.is_pattern else step.name
    return f'    s{step.ordinal}{left}"{label}"{right}' + ("" if step.static else ":::dynamic")


def _edge(parent: StepPlan, child: StepPlan) -> str:
    return f"    s{parent.ordinal} {'-->' if child.static else '-.->'} s{child.ordinal}"
