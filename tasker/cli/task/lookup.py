"""Lookup of a task by its identifier or a prefix of it."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from tasker.errors import TaskNotFound, UsageError

if TYPE_CHECKING:
    from tasker.cli.place.fleet import TaskService

SHORTEST = 8
LENGTH = 32


def looks_like_a_task(text: str) -> bool:
    """Return whether the text may be the prefix of a task's identifier."""
    digits = text.replace("-", "").lower()
    return SHORTEST <= len(digits) <= LENGTH and not set(digits) - set(string.hexdigits)


async def find_task(tasks: TaskService, text: str) -> str:
    """Return the complete identifier. Raises `UsageError` for an invalid or ambiguous prefix, `TaskNotFound`."""
    digits = text.replace("-", "").lower()
    if not digits or set(digits) - set(string.hexdigits) or len(digits) > LENGTH:
        raise UsageError(f"{text!r} is not a task id", hint="expected a UUID; see `tasker task list`")
    if len(digits) < SHORTEST:
        raise UsageError(f"{text!r} is too short for a task id", hint=f"give at least {SHORTEST} characters")
    found = await tasks.starting_with(digits)
    if not found:
        raise TaskNotFound(f"no task {text} in this database", hint="see `tasker task list`")
    if len(found) > 1:
        shown = "".join(f"\n  {uuid}" for uuid in found)
        raise UsageError(f"{text} matches several tasks:{shown}", hint="give more characters")
    return found[0]
