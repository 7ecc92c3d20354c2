"""Page of queues, workers, the broker and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import Request
from starlette.responses import Response

from tasker.errors import MessagingError, NotPermitted, TaskerError, UsageError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import actor_of, caller_of, needs, require_namespace
from tasker.server.errors import problem_of
from tasker.server.program import ServerServices, program_of
from tasker.server.routes import require_task
from tasker.server.web.presenters.fleet import KINDS, command_of, queues, target_fields
from tasker.server.web.presenters.paging import PER_PAGE, NumberedPage, PageNumber, offset_of
from tasker.server.web.rendering import page, redirect
from tasker.server.web.route import page_router, sent
from tasker.services.operators.pauses import PauseTarget
from tasker.services.wording import counted
from tasker.views.fleet import BrokerReport

routes = page_router()
READ = needs(Permission.SYSTEM_ANALYTICS_READ)
CHANGE = needs(Permission.SYSTEM_PAUSES_CHANGE, confines=True, operates=True)


@routes.get("/fleet", **READ)
async def show_fleet(request: Request, number: PageNumber = 1) -> Response:
    """Show a page of the queues, the workers and the pauses."""
    return await _fleet(request, number)


async def _fleet(
    request: Request, number: int = 1, status: int = 200, problem: Any = None, typed: Any = None
) -> Response:
    program, caller = program_of(request), caller_of(request)
    overview = await program.fleet.overview(queues=PER_PAGE, offset=offset_of(number), templates=0)
    namespaces = [queue.namespace for queue in overview.queues]
    lately, backlog, advice = await asyncio.gather(
        program.fleet.activity(tasks=0, namespaces=0),
        program.fleet.backlog(namespaces),
        program.analytics.scaling(namespaces=namespaces),
    )
    pauses = await program.pauses.list(log=10) if caller.may(Permission.SYSTEM_PAUSES_READ) else None
    limits = await program.limits.list(keys=5)
    processes = await program.workers.list() if caller.may(Permission.SYSTEM_HANDLERS_READ) else []
    broker, broker_problem = await _broker(program, namespaces)
    return page(
        request,
        "fleet/page.html",
        status,
        found=overview,
        rows=queues(overview, advice, broker),
        shown=NumberedPage(number, len(namespaces), offset_of(number) + len(namespaces) < overview.namespaces),
        backlog=backlog,
        unserved=lately.unserved[:PER_PAGE],
        more_unserved=len(lately.unserved[PER_PAGE:]),
        retries_due=lately.retries_due,
        processes=processes,
        broker=broker,
        broker_problem=broker_problem,
        limits=limits,
        pauses=pauses,
        command_of=command_of,
        target_fields=target_fields,
        kinds=KINDS,
        problem=problem,
        typed=typed or {},
    )


async def _broker(program: ServerServices, namespaces: Sequence[str]) -> tuple[BrokerReport | None, str]:
    """Return the report of the messaging provider, or None and the problem."""
    try:
        return await program.queues.report(namespaces), ""
    except MessagingError as error:
        return None, problem_of(error)["detail"]


@routes.get("/fleet/{worker}", **needs(Permission.SYSTEM_HANDLERS_READ))
async def show_process(request: Request, worker: str) -> Response:
    """Show one process: the templates and handlers that it serves and the steps that it runs."""
    program = program_of(request)
    steps = await program.fleet.in_flight(worker)
    processes = [process for process in await program.workers.list(stopped=True) if process.worker == worker]
    if not processes:
        raise UsageError(f"no process {worker} is registered", hint="those that ended are forgotten after a day")
    return page(request, "fleet/process.html", process=processes[0], steps=steps)


@routes.post("/fleet/pause", **CHANGE)
async def pause(request: Request) -> Response:
    """Pause a namespace, template, step, task or queue: nothing more of it starts."""
    form = sent(request)
    try:
        target = await _target(request, form.text("what"), form.required("name", "what to pause"))
        reason = form.required("reason", "a reason")
        paused = await program_of(request).pauses.pause(target, actor=actor_of(request), reason=reason)
    except TaskerError as error:
        problem = problem_of(error)
        if isinstance(error, NotPermitted) or problem["status"] >= 500:
            raise
        return await _fleet(
            request, 1, problem["status"], problem, {key: form.text(key) for key in ("what", "name", "reason")}
        )
    message = f"{target} is paused; running steps continue." if paused else f"{target} was paused already."
    return redirect(request, "fleet", message)


@routes.post("/fleet/resume", **CHANGE)
async def resume(request: Request) -> Response:
    form = sent(request)
    target = await _target(request, form.text("what"), form.required("name", "what to resume"))
    held = await program_of(request).pauses.resume(target, actor=actor_of(request), reason=form.text("reason"))
    unit = "message" if target.queue else "step"
    message = (
        f"{target} was not paused." if held is None else f"{target} is resumed: {counted(held, unit)} can start now."
    )
    return redirect(request, "fleet", message)


async def _target(request: Request, kind: str, name: str) -> PauseTarget:
    """Return the target named by a form. Raises `NotPermitted` if it is outside of the caller's namespaces."""
    if kind not in KINDS:
        raise UsageError(f"{kind!r} cannot be paused", hint=f"one of {', '.join(KINDS)}")
    target = PauseTarget.of(name) if kind == "namespace" else PauseTarget.of(**{kind: name})
    if target.task is not None:
        await require_task(request, target.task)
    elif target.queue is not None:
        require_namespace(request, "")
    else:
        require_namespace(request, target.namespace or "")
    return target
