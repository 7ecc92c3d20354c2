"""Finding the task that a person means by its identifier or the beginning of it."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from tasker.errors import TaskNotFound, UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import TaskService

SHORTEST = 8
LENGTH = 32


def looks_like_a_task(text: str) -> bool:
    """Whether it may be the beginning of a task's identifier."""
    digits = text.replace("-", "").lower()
    return SHORTEST <= len(digits) <= LENGTH and not set(digits) - set(string.hexdigits)


async def find_task(tasks: TaskService, text: str) -> str:
    """The whole identifier. Raises `UsageError` for a text that is none or means several, `TaskNotFound`."""
    digits = text.replace("-", "").lower()
    if not digits or set(digits) - set(string.hexdigits) or len(digits) > LENGTH:
        raise UsageError(f"{text!r} is not a task's identifier", hint="expected a UUID; see `tasker task list`")
    if len(digits) < SHORTEST:
        raise UsageError(f"{text!r} is too short for a task's identifier", hint=f"give at least {SHORTEST} characters")
    found = await tasks.starting_with(digits)
    if not found:
        raise TaskNotFound(f"no task {text} in this database", hint="see `tasker task list`")
    if len(found) > 1:
        shown = "".join(f"\n  {uuid}" for uuid in found)
        raise UsageError(f"{text} is the beginning of several tasks:{shown}", hint="give more of it")
    return found[0]
