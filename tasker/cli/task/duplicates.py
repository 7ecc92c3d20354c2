"""Error about a duplicate that names the existing task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tasker.errors import DuplicateTask, IdempotencyKeyReused


@contextmanager
def name_existing_task(arguments: str, advice: str = "") -> Iterator[None]:
    """Raise a duplicate's error with the existing task, its state, the command that shows it, and the `advice`.

    `arguments` are the options that name the fleet of the tasks.
    """
    try:
        yield
    except DuplicateTask as error:
        if error.task_uuid is None or isinstance(error, IdempotencyKeyReused):
            raise
        show = f"to see it: tasker task show {error.task_uuid}{arguments}"
        raise DuplicateTask(
            f"this task already exists: {error.task_uuid}, {error.state}",
            task_uuid=error.task_uuid,
            hint="\n      ".join(filter(None, (show, advice, f"to create another one: {error.hint}"))),
        ) from error
