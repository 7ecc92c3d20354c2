"""Places in a list, as text that is handed back unread."""

from __future__ import annotations

import base64
import binascii

from tasker.errors import UsageError
from tasker.services.tasks import checked


def cursor_after(task_uuid: str, sort: str) -> str:
    """The place behind a task in a list of this order."""
    return base64.urlsafe_b64encode(f"{sort}:{task_uuid}".encode()).decode().rstrip("=")


def place_of(cursor: str, sort: str) -> str:
    """The task that the place is behind. Raises `UsageError` for what is no cursor of such a list."""
    try:
        order, _, task_uuid = base64.urlsafe_b64decode(cursor + "==").decode().partition(":")
        if order == sort:
            return checked(task_uuid)
    except (UsageError, UnicodeDecodeError, binascii.Error, ValueError):
        pass
    raise UsageError("the cursor is not one of this list", hint="send pagination.next_cursor as it was, with the sort")
