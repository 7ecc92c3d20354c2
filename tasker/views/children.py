"""Views of tasks that a step started, and of the step that started a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskParent:
    """Step that started a task, with the present state of its task."""

    task_uuid: str
    namespace: str
    template: str
    status: str
    step: str
    step_uuid: str


@dataclass(frozen=True, slots=True)
class ChildTask:
    """Task that a step started."""

    task_uuid: str
    namespace: str
    template: str
    version: str
    status: str
    outcome: str | None
    """`partial`: it is complete without some of its steps."""
    step: str
    """Name of the step that started it."""
    step_uuid: str
    index: int | None
    """Position of the item for which it was started, from 0; None if the step starts no child for each item."""
    created_at: datetime
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class TaskFamily:
    """Parent of a task and a page of its children, in the order of their creation."""

    task_uuid: str
    parent: TaskParent | None
    """None: no step started it, or you may not see the task of that step."""
    depth: int
    """Number of tasks above it; 0 for one that no step started."""
    children: Sequence[ChildTask]
    counts: Mapping[str, int]
    """Number of children by state, of the first 10,000; those that you may not see are not counted."""
    steps: Mapping[str, int]
    """The same numbers by the name of the step that started them."""
    next_after: str | None
    """`after` of the next page; None on the last one."""
