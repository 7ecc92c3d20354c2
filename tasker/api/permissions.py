"""What a caller must be allowed to do. Every route names one, or is open to everybody (F-272, F-278).

Who calls and what they may is asked of the application's gate before the body of a request is read (F-271). Without
configured authentication the gate lets everybody through, and the server listens on loopback only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fastapi import Request

REQUIRED = "x-required-permission"
"""The key of an operation's description that names its permission (F-282)."""


class Permission(StrEnum):
    """What may be permitted."""

    TASKS_CREATE = "tasks:create"
    TASKS_READ = "tasks:read"
    TASKS_LIST = "tasks:list"
    TASKS_CANCEL = "tasks:cancel"
    TASKS_CONTEXT_READ = "tasks:context_read"
    STEPS_READ = "steps:read"
    STEPS_RESOLVE = "steps:resolve"
    DLQ_READ = "dlq:read"
    DLQ_UPDATE = "dlq:update"
    DLQ_STATS = "dlq:stats"
    TEMPLATES_READ = "templates:read"
    TEMPLATES_VALIDATE = "templates:validate"
    TEMPLATES_REGISTER = "templates:register"
    SYSTEM_CONFIG_READ = "system:config_read"
    SYSTEM_HANDLERS_READ = "system:handlers_read"
    SYSTEM_ANALYTICS_READ = "system:analytics_read"
    SYSTEM_PAUSES_READ = "system:pauses_read"
    SYSTEM_PAUSES_CHANGE = "system:pauses_change"
    WORKER_CONFIG_READ = "worker:config_read"
    WORKER_TEMPLATES_READ = "worker:templates_read"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request: the name that is kept with what they do."""

    name: str


ANYBODY = Caller("anonymous")

Gate = Callable[[Request, Permission], Awaitable[Caller]]
"""Answers who calls; raises `Refused` when they may not."""


async def open_gate(request: Request, permission: Permission) -> Caller:
    """Without configured authentication everybody may do everything."""
    return ANYBODY


def needs(permission: Permission) -> dict[str, Any]:
    """The part of a route's declaration that says which permission it needs."""
    return {"openapi_extra": {REQUIRED: str(permission)}}


async def require(request: Request, permission: Permission) -> None:
    """Ask the gate for one more permission, which the body of the request asks for."""
    await request.app.state.gate(request, permission)


def caller_of(request: Request) -> Caller:
    """Who the gate said is calling."""
    caller: Caller = request.state.caller
    return caller
