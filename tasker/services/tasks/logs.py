"""Log lines and printed output of the handlers of a task."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import UsageError
from tasker.views.steps import LEVELS, StepLogLine


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Filter of log lines: at most `limit`, from `level` on, written since `since`, after the line with the place
    `after`.

    `step` is a name, a UUID, or the template's name of a batch worker; `attempt` is a number.
    """

    step: str | None = None
    attempt: int | None = None
    level: str = LEVELS[0]
    since: datetime | None = None
    after: str | None = None
    limit: int = 1000


async def read_logs(connection: Statements, task_uuid: str, which: LogFilter) -> Sequence[StepLogLine]:
    """Return the lines of a task ordered by time. Raises `UsageError` for a malformed place, and `DatabaseError`."""
    parameters = {
        "task": task_uuid,
        "step": which.step,
        "attempt": which.attempt,
        "level": getattr(logging, which.level.upper()) if which.level != LEVELS[0] else 0,
        "since": which.since,
        "limit": which.limit,
        **_behind(which.after),
    }
    return [_line(*row) for row in await connection.execute(query("logs", "logs"), parameters)]


def _line(
    at: datetime,
    step: str,
    uuid: str,
    token: int,
    attempt: int,
    number: int,
    level: int,
    logger: str,
    message: str,
    fields: Mapping[str, Any] | None,
) -> StepLogLine:
    name = next(
        (level_name for level_name in reversed(LEVELS) if level >= getattr(logging, level_name.upper())), LEVELS[0]
    )
    place = f"{at.isoformat()}/{uuid}/{token}/{number}"
    return StepLogLine(at, step, uuid, attempt, name, logger, message, fields, place)


def _behind(place: str | None) -> Mapping[str, Any]:
    if place is None:
        return {"at": None, "behind": None, "token": None, "line": None}
    try:
        at, uuid, token, line = place.split("/")
        return {"at": datetime.fromisoformat(at), "behind": str(UUID(uuid)), "token": int(token), "line": int(line)}
    except ValueError:
        hint = "pass the `place` of the last line you read"
        raise UsageError(f"{place!r} is not a valid log position", hint=hint) from None
