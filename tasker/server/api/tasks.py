"""Routes of tasks: create, read, wait, cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Header, Path, Query, Request
from starlette.responses import Response

from tasker.errors import DuplicateTask, NotPermitted, TaskerError
from tasker.operations.permissions import Permission
from tasker.server.auth.gate import (
    actor_of,
    caller_of,
    known_caller,
    namespaces_of,
    needs,
    require_namespace,
    tenants_of,
)
from tasker.server.covering import redact_answer, redact_tasks
from tasker.server.cursors import cursor_after, cursor_of
from tasker.server.errors import problem_of
from tasker.server.program import program_of
from tasker.server.rendering import Json, task_context, task_created, task_details, task_view
from tasker.server.routes import location_of, router
from tasker.server.shapes.operators import ExplanationResponse
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.tasks import (
    ON_DUPLICATE,
    BatchResponse,
    QueuedRequest,
    TaskBatch,
    TaskCancelled,
    TaskContextResponse,
    TaskCreated,
    TaskDetailsResponse,
    TaskListResponse,
    TaskRequest,
    TaskRequested,
    TaskResponse,
)
from tasker.server.shapes.texts import Moment, SubmissionHeaders, TraceHeaders
from tasker.server.streams import Wait, seconds_of, wait_for_end
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import SubmissionResult
from tasker.services.tasks.lists import TaskFilter
from tasker.services.tasks.read import names

routes = router("tasks")
TaskUuid = Annotated[str, Path(description="The task's identifier.")]
MOST_STEPS = 1000
"""Of one answer; `more_steps` says how many follow."""


@routes.post(
    "/v1/tasks",
    status_code=201,
    response_model=TaskCreated,
    responses={
        200: {"model": TaskCreated, "description": "It existed, and was asked for, or runs under the unique key."},
        **refusals(409, 422),
    },
    **needs(Permission.TASKS_CREATE, confines=True, tenants=True),
)
async def create_task(
    request: Request, body: TaskRequest, headers: Annotated[SubmissionHeaders, Header()], wait: Wait = None
) -> Json:
    """Create a task of a registered template. 503 with `Retry-After` while the backlog is too large.

    An idempotency key that was used with another input answers 409 `idempotency_key_reused` with the differences.
    """
    program, seconds = program_of(request), seconds_of(wait)
    order = body.order(known_caller(request), headers.context, headers.idempotency_key)
    order = _permit(request, order, body.on_duplicate)
    submitted = await program.submissions.submit(
        order, on_duplicate=ON_DUPLICATE[body.on_duplicate], awaited=bool(seconds)
    )
    if submitted.unique:
        _permit_reading(request, order.namespace)
    await wait_for_end(request, program, submitted.task_uuid, seconds)
    task = await program.views.task(submitted.task_uuid, limit=MOST_STEPS)
    created = await redact_answer(request, submitted.task_uuid, task_created(task, submitted))
    return Json(created, 201 if submitted.created else 200, location_of(request, submitted.task_uuid))


@routes.post(
    "/v1/tasks/batch",
    response_model=BatchResponse,
    responses=refusals(),
    **needs(Permission.TASKS_CREATE, confines=True, tenants=True),
)
async def create_tasks(request: Request, body: TaskBatch, trace: Annotated[TraceHeaders, Header()]) -> Json:
    """Create many tasks in one trace, with an answer for each. Tasks of one template share a transaction."""
    orders = [_permitted(request, task.order(known_caller(request), trace.context), body) for task in body.tasks]
    refused = {place: error for place, error in enumerate(orders) if isinstance(error, NotPermitted)}
    permitted = [order for order in orders if not isinstance(order, NotPermitted)]
    answers = iter(
        await program_of(request).submissions.submit_many(permitted, on_duplicate=ON_DUPLICATE[body.on_duplicate])
    )
    batch = _batch([refused.get(place) or next(answers) for place in range(len(orders))])
    return Json(batch, headers=_retry_after(batch))


@routes.post(
    "/v1/task-requests",
    status_code=202,
    response_model=TaskRequested,
    responses=refusals(),
    **needs(Permission.TASKS_CREATE, confines=True, tenants=True),
)
async def request_task(request: Request, body: QueuedRequest, headers: Annotated[SubmissionHeaders, Header()]) -> Json:
    """Request a task from an orchestrator, through the broker. Refused requests are listed in `/v1/refused-messages`.

    The task exists once an orchestrator has processed the request. While the backlog is too large, the request waits.
    """
    order = body.order(known_caller(request), headers.context, headers.idempotency_key)
    order = _permit(request, order, "refuse")
    named, task = (order.namespace, order.template, order.version), body.task_uuid
    task_uuid = await program_of(request).requests.ask(named, order.request, str(task) if task else None)
    return Json({"task_uuid": task_uuid, "status": "requested"}, 202, location_of(request, task_uuid))


def _permit(request: Request, order: TemplateSubmission, on_duplicate: str) -> TemplateSubmission:
    """Check that the caller may create the task, and may read an existing one if it asks for it; return the submission
    with the caller's tenant, if they are limited to one. Raises `NotPermitted`."""
    require_namespace(request, order.namespace)
    if on_duplicate != "refuse":
        caller_of(request).require_in(Permission.TASKS_READ, order.namespace)
    order = replace(order, client=known_caller(request))
    tenants, tenant = tenants_of(request), order.request.tenant
    if tenants is None:
        return order
    if tenant is None and len(tenants) == 1:
        (tenant,) = tenants
    if tenant not in tenants:
        what = "without a tenant" if tenant is None else f"for tenant {tenant}"
        raise NotPermitted(f"Missing required permission: this is not permitted {what}")
    return replace(order, request=replace(order.request, tenant=tenant))


def _permit_reading(request: Request, namespace: str) -> None:
    """Raise `DuplicateTask` in place of the running task if the caller may not read it."""
    try:
        caller_of(request).require_in(Permission.TASKS_READ, namespace)
    except NotPermitted:
        raise DuplicateTask("A task with this unique key runs.", hint="submit again when it has ended") from None


def _permitted(request: Request, order: TemplateSubmission, body: TaskBatch) -> TemplateSubmission | NotPermitted:
    try:
        return _permit(request, order, body.on_duplicate)
    except NotPermitted as error:
        return error


def _batch(answers: Sequence[SubmissionResult | TaskerError]) -> dict[str, Any]:
    results = [{"index": index, **_answer(submitted)} for index, submitted in enumerate(answers)]
    statuses = [result["status"] for result in results]
    created, existing = statuses.count(201), statuses.count(200)
    return {
        "results": results,
        "created": created,
        "existing": existing,
        "refused": len(results) - created - existing,
    }


def _retry_after(batch: Mapping[str, Any]) -> dict[str, str]:
    """Return the `Retry-After` header of a batch if every task of it may be sent again later."""
    waits = [result.get("problem", {}).get("error", {}).get("retry_after_seconds") for result in batch["results"]]
    return {"Retry-After": str(max(waits))} if all(waits) else {}


def _answer(result: SubmissionResult | TaskerError) -> dict[str, Any]:
    if isinstance(result, SubmissionResult):
        status = 201 if result.created else 200
        return {
            "status": status,
            "task_uuid": result.task_uuid,
            "step_count": result.step_count,
            "created": result.created,
            "unique": result.unique,
        }
    details = problem_of(result, within=True, for_page=False)
    return {"status": details["status"], "problem": details}


@routes.get(
    "/v1/tasks/{uuid}",
    response_model=TaskResponse,
    responses=refusals(404),
    **needs(Permission.TASKS_READ),
)
async def get_task(
    request: Request,
    uuid: TaskUuid,
    wait: Wait = None,
    steps_limit: Annotated[int, Query(ge=1, le=MOST_STEPS, description="Steps of the answer at most.")] = MOST_STEPS,
    steps_offset: Annotated[int, Query(ge=0, le=100_000_000, description="Leave out so many of the first.")] = 0,
) -> Json:
    """A task with a page of its steps; `more_steps` says how many follow."""
    program = program_of(request)
    await wait_for_end(request, program, uuid, seconds_of(wait))
    task = await program.views.task(uuid, limit=steps_limit, offset=steps_offset)
    return Json(await redact_answer(request, uuid, task_view(task)))


@routes.delete(
    "/v1/tasks/{uuid}",
    response_model=TaskCancelled,
    responses=refusals(404),
    **needs(Permission.TASKS_CANCEL, operates=True),
)
async def cancel_task(
    request: Request,
    uuid: TaskUuid,
    reason: Annotated[str, Query(max_length=1024)] = "",
    actor: Annotated[str | None, Query(max_length=255, description="Who, in place of the name that is known.")] = None,
) -> Response:
    """Cancel a task and all its steps that have not ended; 400 if the task has ended."""
    program = program_of(request)
    before = await program.tasks.cancel(uuid, reason=reason, actor=actor_of(request, actor))
    task = {**task_view(await program.views.task(uuid, limit=MOST_STEPS)), "previous_status": before}
    return Json(await redact_answer(request, uuid, task))


StepName = Annotated[
    str | None,
    Query(max_length=255, description="Only this step, ended or not, or the instances of this batch worker."),
]

Names = Annotated[int, Query(ge=1, le=100, description="So many steps of each reason are named.")]


@routes.get(
    "/v1/tasks/{uuid}/explain",
    response_model=ExplanationResponse,
    responses=refusals(404),
    **needs(Permission.TASKS_READ),
)
async def explain_task(request: Request, uuid: TaskUuid, step: StepName = None, names: Names = 5) -> Json:
    """Return, for each step that has not ended, why it does not run now and what would change it."""
    explanation = await program_of(request).tasks.explain(uuid, step, names=names)
    reasons = [{**reason.to_dict(UTC), "template_steps": reason.of} for reason in explanation.reasons]
    return Json(await redact_answer(request, uuid, {**explanation.to_dict(UTC), "reasons": reasons}))


Filter = Annotated[str | None, Query(max_length=255)]
MOST_TRANSITIONS = 10_000
"""Of the details of a task."""
Sort = Annotated[Literal["-created_at", "created_at"], Query(description="The newest first, or the oldest.")]


@routes.get(
    "/v1/tasks",
    response_model=TaskListResponse,
    responses=refusals(),
    **needs(Permission.TASKS_LIST, confines=True, tenants=True),
)
async def list_tasks(
    request: Request,
    namespace: Filter = None,
    status: Annotated[str | None, Query(max_length=255, description="A task's state, such as `complete`.")] = None,
    name: Annotated[str | None, Query(max_length=255, description="The template.")] = None,
    version: Filter = None,
    initiator: Filter = None,
    source_system: Filter = None,
    tenant: Filter = None,
    tag: Annotated[list[str], Query(max_length=20, description="Repeatable: tasks that have all of them.")] = [],  # noqa: B006
    correlation_id: UUID | None = None,
    idempotency_key: Annotated[str | None, Query(max_length=255, description="Of any template that is meant.")] = None,
    created_after: Moment | None = None,
    created_before: Moment | None = None,
    sort: Sort = "-created_at",
    page: Annotated[int, Query(ge=0, le=100_000, description="Counted from 0.")] = 0,
    per_page: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[
        str | None,
        Query(
            max_length=200,
            description="`pagination.next_cursor` of the page before: it costs the same "
            "however far one goes, and nothing is shown twice; `page` and the counts are left out.",
        ),
    ] = None,
) -> Json:
    """Tasks by their time of creation, without their steps; counted to 10,000.

    A page costs no more for many tasks. With a tag, an initiator or a source that many have, beside other filters,
    it may hold fewer tasks than asked for, or none, and say `has_next`: send `next_cursor` to look on.
    """
    which = TaskFilter(
        namespace=namespace,
        status=status,
        template=name,
        version=version,
        initiator=initiator,
        source_system=source_system,
        tenant=tenant,
        tags=tag,
        correlation_id=str(correlation_id) if correlation_id else None,
        idempotency_key=idempotency_key,
        created_after=created_after,
        created_before=created_before,
        namespaces=names(namespaces_of(request)),
        tenants=names(tenants_of(request)),
    )
    views = program_of(request).views
    after = cursor_of(cursor, sort) if cursor else None
    rows, read_to = await views.part(
        which, limit=per_page + 1, offset=0 if after else page * per_page, after=after, oldest_first=sort[0] != "-"
    )
    page_rows = rows[:per_page]
    last = page_rows[-1]["task_uuid"] if len(rows) > per_page else read_to
    pagination: dict[str, Any] = {
        "per_page": per_page,
        "has_next": last is not None,
        "next_cursor": cursor_after(last, sort) if last else None,
    }
    if after is None:
        count = await views.count(which)
        pagination |= {
            "page": page,
            "total_count": count.number,
            "total_is_minimum": count.at_least,
            "total_pages": -(-count.number // per_page),
            "has_previous": page > 0,
        }
    tasks = await redact_tasks(request, [task_view(task) for task in page_rows])
    return Json({"tasks": tasks, "pagination": pagination})


@routes.get(
    "/v1/tasks/{uuid}/context",
    response_model=TaskContextResponse,
    responses=refusals(404),
    **needs(Permission.TASKS_CONTEXT_READ),
)
async def get_task_context(request: Request, uuid: TaskUuid) -> Json:
    """Return the input of a task and the state of its execution."""
    return Json(await redact_answer(request, uuid, task_context(await program_of(request).views.task(uuid, limit=1))))


@routes.get(
    "/v1/tasks/{uuid}/details",
    response_model=TaskDetailsResponse,
    responses=refusals(404),
    **needs(Permission.TASKS_READ),
)
async def get_task_details(request: Request, uuid: TaskUuid) -> Json:
    """A task with the results of its steps and its history: at most 1,000 steps and 10,000 transitions.

    `task.more_steps` says how many steps follow: `/v1/tasks/{uuid}/report` and `/history` have the others.
    """
    program = program_of(request)
    task = await program.views.task(uuid, limit=MOST_STEPS)
    report = await program.tasks.report(uuid, limit=MOST_STEPS)
    details = task_details(task, report, await program.tasks.history(uuid, limit=MOST_TRANSITIONS))
    return Json(await redact_answer(request, uuid, details))
