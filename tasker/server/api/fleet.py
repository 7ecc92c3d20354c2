"""Processes, handlers, queues, pauses and the audit log of the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Request

from tasker.operations.fleet import FleetOperations
from tasker.server.auth.gate import actor_of, require_namespace
from tasker.server.operation_routes import serves
from tasker.server.program import program_of
from tasker.server.routes import require_task, router
from tasker.services.operators.pauses import PauseTarget
from tasker.views.fleet import (
    BrokerReport,
    HandlerInfo,
    LimitUse,
    Paused,
    PauseList,
    RecordedAction,
    Resumed,
    WorkerInfo,
)

routes = router("fleet")


@serves(routes, FleetOperations.list_workers)
async def list_workers(request: Request, stopped: bool) -> Sequence[WorkerInfo]:
    return await program_of(request).workers.list(stopped=stopped)


@serves(routes, FleetOperations.list_handlers)
async def list_handlers(request: Request) -> Sequence[HandlerInfo]:
    return await program_of(request).workers.handlers()


@serves(routes, FleetOperations.list_handlers_of)
async def list_handlers_of(request: Request, namespace: str) -> Sequence[HandlerInfo]:
    return await program_of(request).workers.handlers(namespace=namespace)


@serves(routes, FleetOperations.get_handler)
async def get_handler(request: Request, namespace: str, name: str) -> Sequence[HandlerInfo]:
    return await program_of(request).workers.handlers(namespace=namespace, name=name)


@serves(routes, FleetOperations.list_queues)
async def list_queues(request: Request) -> BrokerReport:
    return await program_of(request).queues.report()


@serves(routes, FleetOperations.list_limits)
async def list_limits(request: Request, name: str | None, keys: int) -> Sequence[LimitUse]:
    return await program_of(request).limits.list(name, keys=keys)


@serves(routes, FleetOperations.list_pauses)
async def list_pauses(request: Request, log: int) -> PauseList:
    return await program_of(request).pauses.list(log=log)


@serves(routes, FleetOperations.list_operator_actions)
async def list_operator_actions(request: Request, **which: Any) -> Sequence[RecordedAction]:
    return await program_of(request).operator_log.list(**which)


@serves(routes, FleetOperations.pause)
async def pause(request: Request, reason: str, actor: str | None, **named: str | None) -> Paused:
    target = await _target(request, **named)
    paused = await program_of(request).pauses.pause(target, actor=actor_of(request, actor), reason=reason)
    return Paused(str(target), paused)


@serves(routes, FleetOperations.resume)
async def resume(request: Request, reason: str, actor: str | None, **named: str | None) -> Resumed:
    target = await _target(request, **named)
    held = await program_of(request).pauses.resume(target, actor=actor_of(request, actor), reason=reason)
    return Resumed(str(target), held is not None, held)


async def _target(request: Request, **named: str | None) -> PauseTarget:
    """Return the target, which must be in the caller's namespaces; a queue belongs to all of them.

    Raises `UsageError`, `NotPermitted`, `TaskNotFound`.
    """
    target = PauseTarget.of(**named)
    if target.task is None:
        require_namespace(request, target.namespace or "*")
    else:
        await require_task(request, target.task)
    return target
