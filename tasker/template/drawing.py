"""A plan as Mermaid, Graphviz, tree or data.

A step with several dependencies appears once, below the last of them, with all of them listed; the others point to it
with an arrow. Steps created at run time have a dashed line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.plan import Plan, StepPlan
from tasker.template.step_types import DEFAULT

__all__ = ["FORMATS", "draw_dot", "draw_mermaid", "draw_text", "graph_data"]


def graph_data(plan: Plan) -> dict[str, Any]:
    """Return `nodes` with `name`, `type`, `level` (longest distance from a root) and `static`, and their `edges`."""
    nodes = [
        {"name": step.name, "type": str(step.type), "level": step.level, "static": step.static} for step in plan.steps
    ]
    edges = [{"from_step": parent, "to_step": step.name} for step in plan.steps for parent in step.depends_on]
    return {"nodes": nodes, "edges": edges}


def draw_dot(plan: Plan) -> str:
    """Return the directed graph in Graphviz format."""
    nodes = [f'  "{s.name}" [shape={s.type.traits.dot}, style={_style(s)}];' for s in plan.steps]
    edges = [f'  "{parent}" -> "{s.name}" [style={_style(s)}];' for s in plan.steps for parent in s.depends_on]
    return "\n".join([f'digraph "{plan.name}" {{', "  rankdir=TB;", *nodes, *edges, "}"])


def _style(step: StepPlan) -> str:
    return "solid" if step.static else "dashed"


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
    if child.handles == parent.name:
        return f'    s{parent.ordinal} -. "fails" .-> s{child.ordinal}'
    if child.undoes == parent.name:
        return f'    s{parent.ordinal} -. "undo" .-> s{child.ordinal}'
    return f"    s{parent.ordinal} {'-->' if child.static else '-.->'} s{child.ordinal}"


@dataclass(frozen=True, slots=True)
class TreeRow:
    """Line of the tree: the drawn prefix, the step, the steps it joins, and the joins it leads to."""

    prefix: str
    step: StepPlan
    joins: tuple[str, ...]
    leads_to: tuple[str, ...]


def tree_rows(plan: Plan) -> Iterator[TreeRow]:
    """Yield the steps in the order of the tree, each once."""
    below = _children(plan)
    stack = [(step, "", "") for step in reversed(plan.steps) if not step.depends_on]
    while stack:
        step, prefix, indent = stack.pop()
        children = below.get(step.name, [])
        leads_to = tuple(name for name in plan.dependents[step.name] if name not in {c.name for c in children})
        yield TreeRow(prefix, step, step.depends_on if len(step.depends_on) > 1 else (), leads_to)
        for child in reversed(children):
            is_last = child is children[-1]
            corner, line = ("└" if is_last else "├"), ("─" if child.static else "┄")
            stack.append((child, f"{indent}{corner}{line} ", indent + ("   " if is_last else "│  ")))


def draw_text(plan: Plan) -> str:
    """Return the tree with a heading, and with a legend if some steps are dynamic."""
    heading = f"{plan.namespace}/{plan.name} {plan.version}"
    legend = [] if all(s.static for s in plan.steps) else ["", "┄ created while the task runs"]
    return "\n".join([heading, "", *(_line(row) for row in tree_rows(plan)), *legend])


def _children(plan: Plan) -> dict[str, list[StepPlan]]:
    """Return for each step the steps drawn below it: those that have it as their last dependency."""
    children: dict[str, list[StepPlan]] = {}
    for step in plan.steps:
        if step.depends_on:
            last = max(step.depends_on, key=lambda name: plan.by_name[name].ordinal)
            children.setdefault(last, []).append(step)
    return children


def _line(row: TreeRow) -> str:
    step = row.step
    name = f"{step.name} x N" if step.type.is_pattern else step.name
    type_ = "" if step.type is DEFAULT else f"  [{step.type}]"
    joins = f"  after {' + '.join(row.joins)}" if row.joins else ""
    arrow = f"  → {', '.join(row.leads_to)}" if row.leads_to else ""
    return f"{row.prefix}{name}{type_}{_expression(step)}{joins}{arrow}"


def _expression(step: StepPlan) -> str:
    """Return the condition or the list of a step that the compiler made for it."""
    if step.handles is not None:
        return f"  if {step.handles} fails"
    if step.undoes is not None:
        return f"  undoes {step.undoes}"
    if step.at_rest:
        return "  at the end in any case"
    if step.made_for is None:
        return ""
    if step.for_each is not None:
        return f"  for each {step.for_each.name} in {step.for_each.items}"
    return f"  if {step.rules[0].when}"


FORMATS: dict[str, Callable[[Plan], str]] = {"mermaid": draw_mermaid, "dot": draw_dot, "text": draw_text}
"""Drawing functions by format name."""
