"""Reading of the tasks that a step started, and of the step that started a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import TaskNotFound
from tasker.errors.remedies import see
from tasker.views.children import ChildTask, TaskFamily, TaskParent

COUNTED = 10_000
"""Number of children of a task that are counted."""


async def read_family(connection: Statements, task: str, *, limit: int, **which: Any) -> TaskFamily:
    """Return the parent and a page of the children of a task; `which` are the parameters of the query `children`.

    Raises `TaskNotFound`.
    """
    params = {"task": task, **which}
    page = await connection.execute(query("children", "children"), {**params, "limit": limit + 1})
    above = await connection.execute(query("children", "parent"), params)
    if not page and not above and not await connection.execute(query("tasks", "state"), {"task": task}):
        raise TaskNotFound(f"no task {task} in this database", hint=see("tasker task list"))
    counts = await connection.execute(query("children", "child_counts"), {**params, "limit": COUNTED}) if page else ()
    children = [_child(*row) for row in page[:limit]]
    return TaskFamily(
        task_uuid=task,
        parent=_parent(above[0][2:]) if above and above[0][1] else None,
        depth=above[0][0] if above else 0,
        children=children,
        counts=_summed((state, number) for _, state, number in counts),
        steps=_summed((name, number) for name, _, number in counts),
        next_after=children[-1].task_uuid if len(page) > limit else None,
    )


def _summed(numbers: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, number in numbers:
        sums[name] = sums.get(name, 0) + number
    return sums


def _child(task_uuid: Any, *row: Any) -> ChildTask:
    *facts, step_uuid, index, created_at, completed_at = row
    values: list[Any] = [str(task_uuid), *facts, str(step_uuid), index, created_at, completed_at]
    return ChildTask(*values)


def _parent(row: Sequence[Any]) -> TaskParent:
    task, namespace, template, status, step, step_uuid = row
    return TaskParent(str(task), namespace, template, status, step, str(step_uuid))
