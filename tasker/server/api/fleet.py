"""Processes, handlers, queues, pauses and the audit log of the fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path, Query, Request

from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, caller_of, needs, require_namespace
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import require_task, router
from tasker.server.shapes.fleet import (
    HandlerListResponse,
    LimitListResponse,
    OperatorActionListResponse,
    PauseListResponse,
    PauseRequest,
    PauseResponse,
    QueuesResponse,
    ResumeResponse,
    WorkerListResponse,
)
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.texts import AwareMoment
from tasker.services.operators.pauses import PauseTarget
from tasker.views.task_lists import ProcessRow

routes = router("fleet")
Name = Annotated[str | None, Query(max_length=255)]
READ = needs(Permission.SYSTEM_HANDLERS_READ)


@routes.get("/v1/workers", response_model=WorkerListResponse, responses=refusals(), **READ)
async def list_workers(
    request: Request, stopped: Annotated[bool, Query(description="Also those that have ended.")] = False
) -> Json:
    """Return every registered process, as `tasker worker list` shows it."""
    workers = await program_of(request).workers.list(stopped=stopped)
    return Json({"workers": [asdict(worker) for worker in workers]})


@routes.get("/v1/handlers", response_model=HandlerListResponse, responses=refusals(), **READ)
async def list_handlers(request: Request) -> Json:
    """Return the handlers loaded by live workers."""
    return Json({"handlers": _handlers(await program_of(request).workers.list())})


@routes.get("/v1/handlers/{namespace}", response_model=HandlerListResponse, responses=refusals(), **READ)
async def list_handlers_of(request: Request, namespace: Annotated[str, Path(max_length=255)]) -> Json:
    """Return the handlers of live workers that serve a namespace."""
    workers = await program_of(request).workers.list()
    return Json({"handlers": _handlers(worker for worker in workers if namespace in worker.namespaces)})


@routes.get("/v1/handlers/{namespace}/{name}", response_model=HandlerListResponse, responses=refusals(), **READ)
async def get_handler(
    request: Request, namespace: Annotated[str, Path(max_length=255)], name: Annotated[str, Path(max_length=500)]
) -> Json:
    """Return one handler with the live workers of the namespace that have it; an empty list if none has."""
    handlers = _handlers(
        worker for worker in await program_of(request).workers.list() if namespace in worker.namespaces
    )
    return Json({"handlers": [handler for handler in handlers if handler["name"] == name]})


def _handlers(processes: Iterable[ProcessRow]) -> list[dict[str, Any]]:
    by_name: defaultdict[str, list[ProcessRow]] = defaultdict(list)
    for process in processes:
        for name in process.callables if process.state == "live" else ():
            by_name[name].append(process)
    return [
        {
            "name": name,
            "namespaces": sorted({namespace for row in rows for namespace in row.namespaces}),
            "workers": [row.worker for row in rows],
        }
        for name, rows in sorted(by_name.items())
    ]


@routes.get(
    "/v1/queues", response_model=QueuesResponse, responses=refusals(), **needs(Permission.SYSTEM_ANALYTICS_READ)
)
async def list_queues(request: Request) -> Json:
    """Return the provider's queues and the numbers that the database expects in them."""
    return Json((await program_of(request).queues.report()).to_dict())


@routes.get(
    "/v1/limits", response_model=LimitListResponse, responses=refusals(), **needs(Permission.SYSTEM_ANALYTICS_READ)
)
async def list_limits(
    request: Request,
    name: Annotated[str | None, Query(max_length=1000, description="Only this limit.")] = None,
    keys: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Json:
    """Return the limits of what runs at the same time, by name: what runs and waits under each.

    The keys for which steps wait come first. They are parts of inputs and results: null for callers who may not read
    sensitive values (`data:read_sensitive`).
    """
    limits = await program_of(request).limits.list(name, keys=keys)
    shown = caller_of(request).may(Permission.DATA_READ_SENSITIVE)
    return Json({"limits": [asdict(use if shown else use.without_keys()) for use in limits]})


@routes.get(
    "/v1/pauses", response_model=PauseListResponse, responses=refusals(), **needs(Permission.SYSTEM_PAUSES_READ)
)
async def list_pauses(request: Request, log: Annotated[int, Query(ge=0, le=1000)] = 20) -> Json:
    """Return the pauses with the work that each holds back. The log has who paused and resumed what, newest first."""
    return Json(asdict(await program_of(request).pauses.list(log=log)))


@routes.get(
    "/v1/operator_actions",
    response_model=OperatorActionListResponse,
    responses=refusals(),
    **needs(Permission.SYSTEM_ACTIONS_READ),
)
async def list_operator_actions(
    request: Request,
    actor: Name = None,
    since: Annotated[AwareMoment | None, Query(description="Asked for at that time or later.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Json:
    """Return the audit log: operator actions over HTTP and by commands on the database, newest first."""
    actions = await program_of(request).operator_log.list(actor=actor, since=since, limit=limit)
    return Json({"actions": [asdict(action) for action in actions]})


@routes.post(
    "/v1/pauses",
    response_model=PauseResponse,
    responses=refusals(404),
    **needs(Permission.SYSTEM_PAUSES_CHANGE, confines=True, operates=True),
)
async def pause(request: Request, body: PauseRequest) -> Json:
    """Pause a target: nothing more of it starts. `paused` is false if it was paused already."""
    target = PauseTarget.of(body.namespace, template=body.template, step=body.step, task=body.task, queue=body.queue)
    await _require_within(request, target)
    actor = actor_of(request, body.actor)
    paused = await program_of(request).pauses.pause(target, actor=actor, reason=body.reason)
    return Json({"target": str(target), "paused": paused})


@routes.delete(
    "/v1/pauses",
    response_model=ResumeResponse,
    responses=refusals(404),
    **needs(Permission.SYSTEM_PAUSES_CHANGE, confines=True, operates=True),
)
async def resume(
    request: Request,
    namespace: Name = None,
    template: Name = None,
    step: Name = None,
    task: Name = None,
    queue: Name = None,
    reason: Annotated[str, Query(max_length=1024)] = "",
    actor: Name = None,
) -> Json:
    """End a pause. `held` is the number of ready steps or messages that continue; null if it was not paused."""
    target = PauseTarget.of(namespace, template=template, step=step, task=task, queue=queue)
    await _require_within(request, target)
    held = await program_of(request).pauses.resume(target, actor=actor_of(request, actor), reason=reason)
    return Json({"target": str(target), "resumed": held is not None, "held": held})


async def _require_within(request: Request, target: PauseTarget) -> None:
    """Check that the target is in the caller's namespaces; a queue belongs to all namespaces. Raises `NotPermitted`."""
    if target.task is None:
        require_namespace(request, target.namespace or "*")
    else:
        await require_task(request, target.task)
