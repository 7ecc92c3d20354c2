"""The `?wait=10s` parameter: answer when the task has ended, at the latest after that time."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query, Request

from tasker.api.envelope import allow_seconds
from tasker.api.program import ServerServices
from tasker.api.streams import Streams
from tasker.errors import UsageError

MOST_SECONDS = 300.0
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}
WRITTEN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|)")
Wait = Annotated[
    str | None,
    Query(
        description="Answer when the task has ended, at the latest after so long: `10s`, `500ms`, `2m`; at most `5m`.",
        examples=["10s"],
        max_length=20,
    ),
]


def seconds_of(text: str | None) -> float | None:
    """Return the time in seconds, or None without one. Raises `UsageError` if it is invalid or too long."""
    if text is None:
        return None
    found = WRITTEN.fullmatch(text)
    seconds = float(found[1]) * UNITS[found[2]] if found else -1.0
    if 0 <= seconds <= MOST_SECONDS:
        return seconds
    raise UsageError(f"wait={text!r} is not a valid wait time", hint="for example 10s, 500ms or 2m; at most 5m")


async def wait_for_end(request: Request, program: ServerServices, task_uuid: str, seconds: float | None) -> None:
    """Return when the task has ended, the time is over, or the server stops. Raises `TaskNotFound`."""
    if not seconds:
        return
    allow_seconds(request.scope, seconds)
    try:
        streams: Streams = request.app.state.streams
        await streams.wait(program.finished(task_uuid, timeout=seconds))
    except TimeoutError:
        return
