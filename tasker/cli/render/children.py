"""The tasks that a task started, and the step that started it, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tasker.cli.render.values import date_time, state_text, table
from tasker.services.wording import counted, duration

if TYPE_CHECKING:
    from tasker.views.children import ChildTask, TaskFamily

HEADINGS = ("task", "template", "status", "step", "created", "time")


def family_text(family: TaskFamily) -> str:
    """Render the parent of a task and a page of its children."""
    return "\n".join(_lines(family))


def _lines(family: TaskFamily) -> Iterator[str]:
    if family.parent is not None:
        parent = family.parent
        yield f"started by step {parent.step} of task {parent.task_uuid} ({state_text(parent.status)})"
    elif family.depth:
        yield "started by a step of a task that you may not see"
    if not family.children:
        yield "its steps have started no tasks"
        return
    counts = ", ".join(f"{number:,} {state}" for state, number in family.counts.items())
    yield f"{counted(sum(family.counts.values()), 'task')}: {counts}"
    yield table(HEADINGS, [_row(child) for child in family.children])
    if family.next_after is not None:
        yield f"there are more: --after {family.next_after}"


def _row(child: ChildTask) -> tuple[str, ...]:
    took = (child.completed_at - child.created_at).total_seconds() * 1000 if child.completed_at else None
    status = state_text(child.status) + (f", {child.outcome}" if child.outcome else "")
    step = child.step if child.index is None else f"{child.step} [{child.index}]"
    template = f"{child.namespace}/{child.template}:{child.version}"
    return child.task_uuid, template, status, step, date_time(child.created_at), duration(took)
