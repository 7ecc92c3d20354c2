"""Pages of schedules: the list, and one with its next fire times, its history and its actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tasker.errors import TaskerError, UsageError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, namespaces_of, needs
from tasker.server.errors import problem_of, status_of
from tasker.server.program import program_of
from tasker.server.web.forms import Form
from tasker.server.web.presenters.paging import PER_PAGE
from tasker.server.web.presenters.tasks import moment_of
from tasker.server.web.rendering import page, redirect, url
from tasker.server.web.route import page_router, sent, typed
from tasker.services.wording import counted
from tasker.views.schedules import Backfill

routes = page_router()
READ = needs(Permission.SCHEDULES_READ, confines=True)
CHANGE = needs(Permission.SCHEDULES_CHANGE, confines=True, operates=True)
Word = Annotated[str, Query(max_length=800)]
UPCOMING = 8


@routes.get("/schedules", **READ)
async def list_schedules(request: Request, namespace: Word = "", after: Word = "") -> Response:
    """Show a page of the schedules."""
    where, service = namespaces_of(request), program_of(request).schedules
    found = await service.list(namespace=namespace or None, namespaces=where, after=after, limit=PER_PAGE + 1)
    rows = found[:PER_PAGE]
    further = url(request, "schedules", namespace=namespace, after=rows[-1].address) if len(found) > PER_PAGE else None
    return page(request, "schedules/list.html", rows=rows, namespace=namespace, further=further)


@routes.get("/schedules/{namespace}/{template}/{name}", **READ)
async def show_schedule(
    request: Request,
    namespace: str,
    template: str,
    name: str,
    begin: Annotated[str, Query(alias="from", max_length=40)] = "",
    end: Annotated[str, Query(alias="to", max_length=40)] = "",
) -> Response:
    """Show a schedule; with a span also the fire times that a backfill of it would submit."""
    address = f"{namespace}/{template}/{name}"
    if not begin and not end:
        return await _schedule(request, address)
    try:
        planned = await program_of(request).schedules.plan_backfill(address, *_span(begin, end))
    except UsageError as error:
        return await _schedule(request, address, 400, problem=problem_of(error), span=(begin, end))
    return await _schedule(request, address, planned=planned, span=(begin, end))


async def _schedule(
    request: Request,
    address: str,
    status: int = 200,
    *,
    problem: Any = None,
    planned: Backfill | None = None,
    span: tuple[str, str] = ("", ""),
    again: dict[str, str] | None = None,
) -> Response:
    service = program_of(request).schedules
    return page(
        request,
        "schedules/page.html",
        status,
        schedule=await service.get(address),
        upcoming=await service.upcoming(address, count=UPCOMING),
        fires=await service.fires(address, limit=PER_PAGE),
        planned=planned,
        planned_span=[moment.isoformat() for moment in _span(*span)] if planned else [],
        span=span,
        problem=problem,
        typed=again or {},
    )


def _span(begin: str, end: str) -> tuple[Any, Any]:
    return moment_of(begin), moment_of(end)


@routes.post("/schedules/{namespace}/{template}/{name}/pause", **CHANGE)
async def pause(request: Request, namespace: str, template: str, name: str) -> Response:
    """Pause a schedule: it submits nothing until it is resumed."""
    address = f"{namespace}/{template}/{name}"

    async def act(form: Form) -> str:
        reason = form.required("reason", "a reason")
        changed = await program_of(request).schedules.pause(address, actor=actor_of(request), reason=reason)
        return "Paused: open tasks continue, no new ones are submitted." if changed else "It was paused already."

    return await _redirect_or_error(request, address, act)


@routes.post("/schedules/{namespace}/{template}/{name}/resume", **CHANGE)
async def resume(request: Request, namespace: str, template: str, name: str) -> Response:
    address = f"{namespace}/{template}/{name}"

    async def act(form: Form) -> str:
        changed = await program_of(request).schedules.resume(address, actor=actor_of(request))
        return "Resumed." if changed else "It was not paused."

    return await _redirect_or_error(request, address, act)


@routes.post("/schedules/{namespace}/{template}/{name}/trigger", **CHANGE)
async def trigger(request: Request, namespace: str, template: str, name: str) -> Response:
    """Submit a task of a schedule now."""
    address = f"{namespace}/{template}/{name}"

    async def act(form: Form) -> str:
        reason = form.required("reason", "a reason")
        task = await program_of(request).schedules.trigger(address, actor=actor_of(request), reason=reason)
        return f"Submitted the task {task}."

    return await _redirect_or_error(request, address, act)


@routes.post("/schedules/{namespace}/{template}/{name}/backfill", **CHANGE)
async def backfill(request: Request, namespace: str, template: str, name: str) -> Response:
    """Submit the tasks of past fire times that have none."""
    address = f"{namespace}/{template}/{name}"

    async def act(form: Form) -> str:
        reason = form.required("reason", "a reason")
        span = _span(form.required("from", "the begin"), form.required("to", "the end"))
        done = await program_of(request).schedules.backfill(address, *span, actor=actor_of(request), reason=reason)
        return f"{counted(len(done.fires), 'task')} will be submitted."

    return await _redirect_or_error(request, address, act)


async def _redirect_or_error(request: Request, address: str, act: Callable[[Form], Awaitable[str]]) -> Response:
    """Perform the action; if it fails, show the schedule again with the error and the typed values."""
    form = sent(request)
    try:
        return redirect(request, f"schedules/{address}", await act(form))
    except TaskerError as error:
        status = status_of(request, error)
        if status in (403, 404) or status >= 500:
            raise
        span = (form.text("from"), form.text("to"))
        values = typed(request, "reason")
        return await _schedule(request, address, status, problem=problem_of(error), span=span, again=values)
