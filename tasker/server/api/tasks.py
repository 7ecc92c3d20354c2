"""Routes of tasks: create, read, wait, cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Header, Path, Request

from tasker.errors import DuplicateTask, NotPermitted, TaskerError
from tasker.operations.permissions import Permission
from tasker.operations.tasks import MOST_STEPS, TaskOperations
from tasker.server.auth.gate import (
    actor_of,
    caller_of,
    known_caller,
    namespaces_of,
    needs,
    require_namespace,
    tenants_of,
)
from tasker.server.errors import problem_of
from tasker.server.operation_routes import published_type, serves
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import location_of, router
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.tasks import ON_DUPLICATE, BatchResponse, QueuedRequest, TaskBatch, TaskRequest
from tasker.server.shapes.texts import SubmissionHeaders, TraceHeaders
from tasker.server.streams import Wait, seconds_of, wait_for_end
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import SubmissionResult
from tasker.services.tasks.lists import TaskFilter
from tasker.services.tasks.read import names
from tasker.views.explanation import Explanation
from tasker.views.model import encode
from tasker.views.task_details import TaskContext, TaskDetails
from tasker.views.tasks import Task, TaskCancelled, TaskCreated, TaskPage, TaskRequested, extended

routes = router("tasks")
TaskUuid = Annotated[str, Path(description="The task's identifier.")]
CREATED = published_type(TaskCreated)


@routes.post(
    "/v1/tasks",
    status_code=201,
    response_model=CREATED,
    responses={
        200: {"model": CREATED, "description": "It existed, and was asked for, or runs under the unique key."},
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
    order = await _linked(request, _permit(request, order, body.on_duplicate))
    submitted = await program.submissions.submit(
        order, on_duplicate=ON_DUPLICATE[body.on_duplicate], awaited=bool(seconds)
    )
    if submitted.unique or submitted.debounced or not (submitted.created or body.parent is None):
        _permit_reading(request, order.namespace)
    await wait_for_end(request, program, submitted.task_uuid, seconds)
    task = await program.views.task(submitted.task_uuid, limit=MOST_STEPS)
    existing = "A task with this unique key runs" if submitted.unique else "A task with this identity exists"
    existing = "Merged into the task of this debounce key" if submitted.debounced else existing
    created = extended(
        TaskCreated,
        task,
        step_count=submitted.step_count,
        message="Task created successfully" if submitted.created else existing,
        created=submitted.created,
        unique=submitted.unique,
        debounced=submitted.debounced,
    )
    shown = encode(TaskCreated, created)
    return Json(shown, 201 if submitted.created else 200, location_of(request, submitted.task_uuid))


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
    permitted = [await _linked(request, order) for order in orders if not isinstance(order, NotPermitted)]
    answers = iter(
        await program_of(request).submissions.submit_many(permitted, on_duplicate=ON_DUPLICATE[body.on_duplicate])
    )
    batch = _batch([refused.get(place) or next(answers) for place in range(len(orders))])
    return Json(batch, headers=_retry_after(batch))


@routes.post(
    "/v1/task-requests",
    status_code=202,
    response_model=published_type(TaskRequested),
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


async def _linked(request: Request, order: TemplateSubmission) -> TemplateSubmission:
    """Return the submission without a link to its parent if the caller may not read the task of that step: it remains
    identified by the step, but is not shown as its child."""
    parent, caller = order.request.parent, caller_of(request)
    if parent is None:
        return order
    where = caller.namespaces(Permission.TASKS_READ) if caller.may(Permission.TASKS_READ) else frozenset[str]()
    seen = await program_of(request).tasks.has_step(parent.step_uuid, namespaces=where, tenants=tenants_of(request))
    return replace(order, request=replace(order.request, parent=replace(parent, linked=seen)))


def _permit_reading(request: Request, namespace: str) -> None:
    """Raise `DuplicateTask` in place of the running task if the caller may not read it."""
    try:
        caller_of(request).require_in(Permission.TASKS_READ, namespace)
    except NotPermitted:
        raise DuplicateTask("The task exists already.", hint="with tasks:read you get its identifier") from None


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
            "debounced": result.debounced,
        }
    details = problem_of(result, within=True, for_page=False)
    return {"status": details["status"], "problem": details}


@serves(routes, TaskOperations.get_task_page)
async def get_task(request: Request, task_uuid: str, wait: float | None, limit: int, offset: int) -> Task:
    program = program_of(request)
    await wait_for_end(request, program, task_uuid, wait)
    return await program.views.task(task_uuid, limit=limit, offset=offset)


@serves(routes, TaskOperations.cancel_task)
async def cancel_task(
    request: Request, task_uuid: str, reason: str, actor: str | None, compensate: bool
) -> TaskCancelled:
    program = program_of(request)
    before = await program.tasks.cancel(task_uuid, reason=reason, actor=actor_of(request, actor), compensate=compensate)
    task = await program.views.task(task_uuid, limit=MOST_STEPS)
    return extended(TaskCancelled, task, previous_status=before)


@serves(routes, TaskOperations.compensate_task)
async def compensate_task(request: Request, task_uuid: str, reason: str, actor: str | None) -> Task:
    program = program_of(request)
    await program.tasks.compensate(task_uuid, reason=reason, actor=actor_of(request, actor))
    return await program.views.task(task_uuid, limit=MOST_STEPS)


@serves(routes, TaskOperations.explain_task)
async def explain_task(request: Request, task_uuid: str, step: str | None, names: int) -> Explanation:
    explanation = await program_of(request).tasks.explain(task_uuid, step, names=names)
    return explanation


@serves(routes, TaskOperations.list_tasks)
async def list_tasks(
    request: Request, sort: str, page: int, per_page: int, cursor: str | None, **filters: Any
) -> TaskPage:
    namespaces, tenants = names(namespaces_of(request)), names(tenants_of(request))
    which = TaskFilter(**filters, namespaces=namespaces, tenants=tenants)
    return await program_of(request).views.task_page(which, sort=sort, page=page, per_page=per_page, cursor=cursor)


@serves(routes, TaskOperations.get_task_context)
async def get_task_context(request: Request, task_uuid: str) -> TaskContext:
    return await program_of(request).views.context(task_uuid)


@serves(routes, TaskOperations.get_task_details)
async def get_task_details(request: Request, task_uuid: str) -> TaskDetails:
    return await program_of(request).views.details(task_uuid)
