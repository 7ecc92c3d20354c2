"""Routes for operators: task lists, reports, history, logs and the state of the fleet."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import Query, Request

from tasker.operations.fleet import FleetOperations
from tasker.operations.permissions import Permission
from tasker.operations.steps import StepOperations
from tasker.server.api.tasks import MOST_STEPS, TaskUuid
from tasker.server.auth.gate import actor_of, namespaces_of, needs, tenants_of
from tasker.server.covering import may_search_inputs, redact_answer
from tasker.server.operation_routes import serves
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import location_of, router
from tasker.server.shapes.operators import HistoryEntry, RerunRequest
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.steps import StepAuditResponse
from tasker.server.shapes.texts import Moment
from tasker.services.operators.reruns import StartedRerun, where_to_begin
from tasker.services.tasks.logs import StepLogLine
from tasker.views.fleet import DoctorReport
from tasker.views.overview import Overview
from tasker.views.progress import TaskProgress
from tasker.views.steps import RetriedSteps
from tasker.views.task_lists import RefusedMessage, TaskSummary
from tasker.views.tasks import TaskReport

routes = router("operators")
Filter = Annotated[str | None, Query(max_length=255)]
TASKS = needs(Permission.TASKS_READ)
LISTED = needs(Permission.TASKS_LIST, confines=True, tenants=True)
Hexadecimal = Annotated[str, Query(pattern=r"^[0-9a-fA-F-]{1,36}$", description="How the identifiers begin.")]


@routes.get("/v1/listings/tasks", response_model=list[TaskSummary], responses=refusals(), **LISTED)
async def list_tasks_briefly(
    request: Request,
    namespace: Filter = None,
    template: Filter = None,
    status: Filter = None,
    since: Moment | None = None,
    tag: Annotated[list[str], Query(max_length=20, description="Repeatable: tasks that have all of them.")] = [],  # noqa: B006
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    version: Filter = None,
    initiator: Filter = None,
    source_system: Filter = None,
    tenant: Filter = None,
    correlation_id: UUID | None = None,
    idempotency_key: Annotated[str | None, Query(max_length=255, description="Of any template that is meant.")] = None,
    fingerprint: Annotated[str | None, Query(max_length=64, description="Of a failure of dead letters.")] = None,
    until: Annotated[Moment | None, Query(description="Created before then.")] = None,
    open_: Annotated[bool, Query(alias="open", description="Only tasks that have not ended.")] = False,
    oldest_first: bool = False,
    field: Annotated[str | None, Query(max_length=2000, description="Of the input, such as `order.id = 7`.")] = None,
) -> Json:
    """Return tasks, newest first, with their step counts and what holds them back."""
    which: dict[str, Any] = {"namespace": namespace, "template": template, "status": status, "since": since}
    which |= {"version": version, "initiator": initiator, "source_system": source_system, "until": until}
    which |= {"correlation_id": correlation_id and str(correlation_id), "open": open_, "oldest_first": oldest_first}
    which |= {"tenant": tenant, "fingerprint": fingerprint, "field": field, "idempotency_key": idempotency_key}
    if field:
        await may_search_inputs(request, namespace)
    tasks = program_of(request).tasks
    which |= {"namespaces": namespaces_of(request), "tenants": tenants_of(request)}
    return Json(await tasks.list(**which, tags=tag, limit=limit, offset=offset))


@routes.get("/v1/listings/identifiers", response_model=list[str], responses=refusals(), **LISTED)
async def list_identifiers(
    request: Request, beginning: Hexadecimal, limit: Annotated[int, Query(ge=1, le=100)] = 10
) -> Json:
    """Return the identifiers of tasks that start with a prefix, newest first."""
    tasks, where = program_of(request).tasks, namespaces_of(request)
    return Json(await tasks.starting_with(beginning, limit=limit, namespaces=where, tenants=tenants_of(request)))


@routes.get("/v1/tasks/{uuid}/report", response_model=TaskReport, responses=refusals(404), **TASKS)
async def get_report(
    request: Request,
    uuid: TaskUuid,
    limit: Annotated[int, Query(ge=1, le=MOST_STEPS)] = MOST_STEPS,
    offset: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
) -> Json:
    """A task with all that is known of a page of its steps: results, each failed attempt, what they wait for.

    `more_steps` says how many follow.
    """
    report = await program_of(request).tasks.report(uuid, limit=limit, offset=offset)
    return Json(await redact_answer(request, uuid, report))


@routes.get("/v1/tasks/{uuid}/history", response_model=list[HistoryEntry], responses=refusals(404), **TASKS)
async def get_history(
    request: Request,
    uuid: TaskUuid,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Json:
    """Return a page of the transitions of a task and its steps in order, with author and reason."""
    history = await program_of(request).tasks.history(uuid, limit=limit, offset=offset)
    return Json(await redact_answer(request, uuid, history))


@routes.get("/v1/tasks/{uuid}/progress", response_model=TaskProgress, responses=refusals(404), **TASKS)
async def get_progress(
    request: Request,
    uuid: TaskUuid,
    since: Annotated[Moment | None, Query(description="Only steps that changed since then, or run.")] = None,
) -> Json:
    """Return the progress of a task, for views that poll."""
    return Json(await redact_answer(request, uuid, await program_of(request).tasks.progress(uuid, since)))


@routes.get("/v1/tasks/{uuid}/logs", response_model=list[StepLogLine], responses=refusals(404), **TASKS)
async def get_logs(
    request: Request,
    uuid: TaskUuid,
    step: Annotated[Filter, Query(description="A name, a UUID, or a batch worker's name in the template.")] = None,
    attempt: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    level: Annotated[Literal["debug", "info", "warning", "error"], Query(description="From this level on.")] = "debug",
    since: Moment | None = None,
    after: Annotated[
        str | None, Query(max_length=120, description="The `place` of the line that was read last.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Json:
    """Return what the handlers of a task logged and printed, ordered by time. A line is stored within seconds."""
    which: dict[str, Any] = {"step": step, "attempt": attempt, "level": level, "since": since, "after": after}
    lines = await program_of(request).tasks.logs(uuid, **which, limit=limit)
    return Json(await redact_answer(request, uuid, lines))


@routes.get("/v1/tasks/{uuid}/template", response_model=dict[str, Any], responses=refusals(404), **TASKS)
async def get_template_of_task(request: Request, uuid: TaskUuid) -> Json:
    """Return the compiled template that a task is pinned to."""
    return Json(orjson.loads((await program_of(request).pinned_plan(uuid)).to_json()))


@routes.get(
    "/v1/tasks/{uuid}/audit",
    response_model=list[StepAuditResponse],
    responses=refusals(404),
    **needs(Permission.STEPS_READ),
)
async def get_audit_of_task(request: Request, uuid: TaskUuid) -> Json:
    """Return every stored result of a task's steps with its author, newest first."""
    return Json(await redact_answer(request, uuid, await program_of(request).views.audit(uuid)))


@serves(routes, StepOperations.retry_task)
async def retry_task(request: Request, task_uuid: str, reason: str, actor: str | None) -> RetriedSteps:
    return await program_of(request).steps.retry(task_uuid, actor=actor_of(request, actor), reason=reason)


@routes.post(
    "/v1/tasks/{uuid}/rerun",
    status_code=201,
    response_model=StartedRerun,
    responses=refusals(404, 422),
    **needs(Permission.TASKS_CREATE, operates=True),
)
async def rerun_task(request: Request, uuid: TaskUuid, body: RerunRequest) -> Json:
    """Run a task again from one of its steps, as a new task. It reuses the results above that step; this task is
    unchanged."""
    who = {"actor": actor_of(request, body.actor), "reason": body.reason}
    program = program_of(request)
    step = body.from_step or where_to_begin(await program.tasks.report(uuid))
    begun = await program.reruns.start(uuid, step, context=body.context, changes=body.set, **who)
    return Json(begun, 201, location_of(request, begun.task_uuid))


@routes.get(
    "/v1/refused-messages",
    response_model=list[RefusedMessage],
    responses=refusals(),
    **needs(Permission.DATA_READ_SENSITIVE),
)
async def list_refused_messages(
    request: Request, queue: Filter = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> Json:
    """Return messages that could not be processed, with the reason, newest first. They may contain the input of any
    task."""
    return Json(await program_of(request).tasks.refused(queue=queue, limit=limit))


@serves(routes, FleetOperations.overview)
async def get_overview(request: Request) -> Overview:
    return await program_of(request).fleet.overview()


@serves(routes, FleetOperations.doctor)
async def get_findings(request: Request) -> DoctorReport:
    return DoctorReport(await program_of(request).doctor.findings())
