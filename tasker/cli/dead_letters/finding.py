"""Lookup of an entry by its own identifier or by its task's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.cli.task.lookup import find_task
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.services.dead_letters.records import DeadLetter


async def found_entry(app: Fleet, uuid: str) -> DeadLetter:
    """Return the entry, or the newest one of that task. Raises `DeadLetterNotFound`, `UsageError`."""
    from tasker.errors import DeadLetterNotFound, TaskNotFound

    try:
        return await app.dead_letters.entry(uuid)
    except (DeadLetterNotFound, UsageError) as missing:
        try:
            task = await find_task(app.tasks, uuid)
        except TaskNotFound:
            raise missing from None
        return await app.dead_letters.of_task(task)
