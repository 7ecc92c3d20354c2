"""Drawing of a plan as a tree for the terminal.

A step with several dependencies appears once, below the last of them, with all of them listed; the others point to it
with an arrow. Steps created at run time have a dashed line.
"""

from __future__ import annotations

from collections.abc import Iterator

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import Plan, StepPlan
from tasker.contracts.step_types import DEFAULT


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
    found: dict[str, list[StepPlan]] = {}
    for step in plan.steps:
        if step.depends_on:
            last = max(step.depends_on, key=lambda name: plan.by_name[name].ordinal)
            found.setdefault(last, []).append(step)
    return found


def _line(row: TreeRow) -> str:
    step = row.step
    name = f"{step.name} x N" if step.type.is_pattern else step.name
    type_ = "" if step.type is DEFAULT else f"  [{step.type}]"
    joins = f"  after {' + '.join(row.joins)}" if row.joins else ""
    arrow = f"  → {', '.join(row.leads_to)}" if row.leads_to else ""
    return f"{row.prefix}{name}{type_}{joins}{arrow}"
