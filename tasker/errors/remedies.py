"""Hints that name a command, each with the HTTP request that does the same: a client of the API has no command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REQUESTS: Final[Mapping[str, str]] = {
    "tasker approval show": "GET /v1/approvals/{task_uuid}/{step}",
    "tasker dlq list": "GET /v1/dlq",
    "tasker dlq replays": "GET /v1/dlq/replays",
    "tasker dlq show": "GET /v1/dlq/task/{task_uuid}",
    "tasker events subscribers": "GET /v1/events/subscribers",
    "tasker pause": "POST /v1/pauses",
    "tasker schedule list": "GET /v1/schedules",
    "tasker task list": "GET /v1/tasks",
    "tasker task cancel --compensate": "DELETE /v1/tasks/{uuid}?compensate=true",
    "tasker task rerun": "POST /v1/tasks/{uuid}/rerun",
    "tasker task show": "GET /v1/tasks/{uuid}",
    "tasker template list": "GET /v1/templates",
    "tasker template register": "POST /v1/templates",
    "tasker worker list": "GET /v1/workers",
}
"""Requests by the command that does the same."""


class Remedy(str):
    """Hint that names a command; `http` is the same hint for readers of an HTTP answer."""

    http: str = ""


def remedy(hint: str, command: str, options: str = "") -> Remedy:
    """Return the hint with the command in place of `{}`. Raises `KeyError` for a command without a request."""
    made = Remedy(hint.format(f"`{command}{options}`"))
    made.http = hint.format(f"`{REQUESTS[command]}`")
    return made


def see(command: str) -> Remedy:
    """Return the hint to look at the output of a command."""
    return remedy("see {}", command)


def http_form(hint: str | None) -> str | None:
    """Return a hint as an HTTP answer has it."""
    return hint.http if isinstance(hint, Remedy) else hint


def command_form(hint: str | None) -> str | None:
    """Return a hint of an HTTP answer with commands in place of requests, for readers at a command line."""
    for command, request in REQUESTS.items():
        hint = hint and hint.replace(f"`{request}`", f"`{command}`")
    return hint
