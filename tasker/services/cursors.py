"""Opaque cursors into a list of tasks."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tasker.errors import UsageError
from tasker.json_values import require_findable
from tasker.services.tasks.read import checked

TEMPLATE = ("namespace", "name", "version", "updated_at")


def cursor_after(task_uuid: str, sort: str) -> str:
    """The place behind a task in a list of this order."""
    return _encoded(f"{sort}:{task_uuid}")


def cursor_of(cursor: str, sort: str) -> str:
    """Return the UUID of the task that the cursor points behind. Raises `UsageError` if it is not a cursor of such a
    list."""
    try:
        order, _, task_uuid = _decoded(cursor).partition(":")
        if order == sort:
            return checked(task_uuid)
    except (UsageError, UnicodeDecodeError, binascii.Error, ValueError):
        pass
    raise UsageError("the cursor is not one of this list", hint="send pagination.next_cursor unchanged, with the sort")


def cursor_after_template(row: Mapping[str, Any]) -> str:
    """Return the place behind a template in the list of templates."""
    return _encoded(json.dumps([*(row[name] for name in TEMPLATE[:-1]), row["updated_at"].isoformat()]))


def template_place(cursor: str) -> dict[str, Any]:
    """Return the template that the place is behind. Raises `UsageError` for what is no cursor of that list."""
    try:
        *names, moment = json.loads(_decoded(cursor))
        if len(names) == len(TEMPLATE) - 1 and all(isinstance(name, str) for name in names):
            for name in names:
                require_findable(name, "cursor")
            return dict(zip(TEMPLATE, [*names, datetime.fromisoformat(moment)], strict=True))
    except (UsageError, UnicodeDecodeError, binascii.Error, ValueError, TypeError):
        pass
    raise UsageError("the cursor is not one of this list", hint="send pagination.next_cursor unchanged")


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str) -> str:
    return base64.urlsafe_b64decode(cursor + "==").decode()
