"""Steps of a task: reading them and operator actions on them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

from fastapi import Path, Query, Request

from tasker.operations.permissions import Permission
from tasker.server.api.tasks import MOST_STEPS, TaskUuid
from tasker.server.auth.gate import actor_of, needs
from tasker.server.covering import redact_answer
from tasker.server.program import program_of
from tasker.server.rendering import Json, step_view
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.steps import (
    CompleteManually,
    ResetForRetry,
    StepAuditResponse,
    StepInputsResponse,
    StepManualAction,
    StepResponse,
)

routes = router("steps")
LIST = "/v1/tasks/{uuid}/workflow_steps"
ONE = LIST + "/{step_uuid}"
StepUuid = Annotated[str, Path(description="The step's identifier.")]


@routes.get(LIST, response_model=list[StepResponse], responses=refusals(404), **needs(Permission.STEPS_READ))
async def list_steps(
    request: Request,
    uuid: TaskUuid,
    limit: Annotated[int, Query(ge=1, le=MOST_STEPS)] = MOST_STEPS,
    offset: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
) -> Json:
    """The steps of a task with their results, in topological order: a page of them."""
    page = await program_of(request).views.steps(uuid, limit=limit, offset=offset)
    steps = [step_view(step) for step in page]
    return Json(await redact_answer(request, uuid, steps))


@routes.get(ONE, response_model=StepResponse, responses=refusals(404), **needs(Permission.STEPS_READ))
async def get_step(request: Request, uuid: TaskUuid, step_uuid: StepUuid) -> Json:
    """Return one step with its result."""
    step = step_view(await program_of(request).views.step(uuid, step_uuid))
    return Json(await redact_answer(request, uuid, step))


@routes.patch(
    ONE, response_model=StepResponse, responses=refusals(404, 422), **needs(Permission.STEPS_RESOLVE, operates=True)
)
async def mend_step(request: Request, uuid: TaskUuid, step_uuid: StepUuid, body: StepManualAction) -> Json:
    """Run a step again, or mark it as done. 400 if the state of the step or its task does not allow it."""
    program = program_of(request)
    step = await program.views.step(uuid, step_uuid)
    await _act(request, uuid, step["name"], body)
    return Json(await redact_answer(request, uuid, step_view(await program.views.step(uuid, step_uuid))))


def _act(request: Request, task: str, step: str, body: StepManualAction) -> Awaitable[None]:
    steps, action = program_of(request).steps, body.root
    if isinstance(action, ResetForRetry):
        return steps.reset(task, step, actor=actor_of(request, action.reset_by), reason=action.reason)
    if isinstance(action, CompleteManually):
        completion, who = action.completion_data, actor_of(request, action.completed_by)
        return steps.complete(
            task, step, completion.result, actor=who, reason=action.reason, metadata=completion.metadata
        )
    return steps.resolve(task, step, actor=actor_of(request, action.resolved_by), reason=action.reason)


@routes.get(ONE + "/inputs", response_model=StepInputsResponse, responses=refusals(404), **needs(Permission.STEPS_READ))
async def get_inputs(request: Request, uuid: TaskUuid, step_uuid: StepUuid) -> Json:
    """Return the input of a step's handler, with its expressions evaluated."""
    return Json(await redact_answer(request, uuid, await program_of(request).views.inputs(uuid, step_uuid)))


@routes.get(
    ONE + "/audit", response_model=list[StepAuditResponse], responses=refusals(404), **needs(Permission.STEPS_READ)
)
async def get_audit(request: Request, uuid: TaskUuid, step_uuid: StepUuid) -> Json:
    """Return the stored results of a step with their authors, newest first."""
    return Json(await redact_answer(request, uuid, await program_of(request).views.audit(uuid, step_uuid)))
