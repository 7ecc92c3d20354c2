"""Creating, reading and cancelling tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request
from starlette.responses import Response

from tasker.api.covering import redact_answer
from tasker.api.json_response import Json
from tasker.api.permissions import Permission, actor_of, caller_of, known_caller, needs, require_namespace
from tasker.api.problems import problem_of
from tasker.api.rendering import task_created, task_view
from tasker.api.routes.route import location_of, program_of, router
from tasker.api.shapes.problems import refusals
from tasker.api.shapes.tasks import (
    ON_DUPLICATE,
    BatchResponse,
    QueuedRequest,
    TaskBatch,
    TaskCancelled,
    TaskCreated,
    TaskRequest,
    TaskRequested,
    TaskResponse,
)
from tasker.api.shapes.tracing import SubmissionHeaders, TraceHeaders
from tasker.api.waiting import Wait, seconds_of, wait_for_end
from tasker.errors import NotPermitted, TaskerError
from tasker.services.server.bulk_submission import TemplateSubmission
from tasker.services.submitting.submission import SubmissionResult

routes = router("tasks")
TaskUuid = Annotated[str, Path(description="The task's identifier.")]
MOST_STEPS = 1000
"""Of one answer; `more_steps` says how many follow."""


@routes.post(
    "/v1/tasks",
    status_code=201,
    response_model=TaskCreated,
    responses={200: {"model": TaskCreated, "description": "It existed, and was asked for."}, **refusals(409, 422)},
    **needs(Permission.TASKS_CREATE, confines=True),
)
async def create_task(
    request: Request, body: TaskRequest, headers: Annotated[SubmissionHeaders, Header()], wait: Wait = None
) -> Json:
    """Create a task of a registered template. 503 with `Retry-After` while the backlog is too large.

    An idempotency key that was used with another input answers 409 `idempotency_key_reused` with the differences.
    """
    program, seconds = program_of(request), seconds_of(wait)
    order = body.order(known_caller(request), headers.context, headers.idempotency_key)
    _permit(request, order, body.on_duplicate)
    submitted = await program.submit_order(order, on_duplicate=ON_DUPLICATE[body.on_duplicate], awaited=bool(seconds))
    await wait_for_end(request, program, submitted.task_uuid, seconds)
    task = await program.views.task(submitted.task_uuid, limit=MOST_STEPS)
    created = await redact_answer(request, submitted.task_uuid, task_created(task, submitted))
    return Json(created, 201 if submitted.created else 200, location_of(request, submitted.task_uuid))


@routes.post(
    "/v1/tasks/batch",
    response_model=BatchResponse,
    responses=refusals(),
    **needs(Permission.TASKS_CREATE, confines=True),
)
async def create_tasks(request: Request, body: TaskBatch, trace: Annotated[TraceHeaders, Header()]) -> Json:
    """Create many tasks in one trace, with an answer for each. Tasks of one template share a transaction."""
    orders = [each.order(known_caller(request), trace.context) for each in body.tasks]
    refused = {place: error for place, order in enumerate(orders) if (error := _refusal(request, order, body))}
    permitted = [order for place, order in enumerate(orders) if place not in refused]
    answers = iter(await program_of(request).submit_orders(permitted, on_duplicate=ON_DUPLICATE[body.on_duplicate]))
    found = _batch([refused.get(place) or next(answers) for place in range(len(orders))])
    return Json(found, headers=_retry_after(found))


@routes.post(
    "/v1/task-requests",
    status_code=202,
    response_model=TaskRequested,
    responses=refusals(),
    **needs(Permission.TASKS_CREATE, confines=True),
)
async def request_task(request: Request, body: QueuedRequest, headers: Annotated[SubmissionHeaders, Header()]) -> Json:
    """Request a task from an orchestrator, through the broker. Refused requests are listed in `/v1/refused-messages`.

    The task exists once an orchestrator has processed the request. While the backlog is too large, the request waits.
    """
    order = body.order(known_caller(request), headers.context, headers.idempotency_key)
    require_namespace(request, order.namespace)
    named, task = (order.namespace, order.template, order.version), body.task_uuid
    asked = await program_of(request).requests.ask(named, order.request, str(task) if task else None)
    return Json({"task_uuid": asked, "status": "requested"}, 202, location_of(request, asked))


def _permit(request: Request, order: TemplateSubmission, on_duplicate: str) -> None:
    """Check that the caller may create the task, and may read an existing one if it asks for it. Raises
    `NotPermitted`."""
    require_namespace(request, order.namespace)
    if on_duplicate != "refuse":
        caller_of(request).require_in(Permission.TASKS_READ, order.namespace)


def _refusal(request: Request, order: TemplateSubmission, body: TaskBatch) -> NotPermitted | None:
    try:
        _permit(request, order, body.on_duplicate)
    except NotPermitted as error:
        return error
    return None


def _batch(answers: Sequence[SubmissionResult | TaskerError]) -> dict[str, Any]:
    results = [{"index": index, **_answer(each)} for index, each in enumerate(answers)]
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


def _answer(each: SubmissionResult | TaskerError) -> dict[str, Any]:
    if isinstance(each, SubmissionResult):
        status = 201 if each.created else 200
        return {"status": status, "task_uuid": each.task_uuid, "step_count": each.step_count, "created": each.created}
    found = problem_of(each, within=True, for_page=False)
    return {"status": found["status"], "problem": found}


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
    found = {**task_view(await program.views.task(uuid, limit=MOST_STEPS)), "previous_status": before}
    return Json(await redact_answer(request, uuid, found))
