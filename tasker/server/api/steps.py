"""Steps of a task: reading them and operator actions on them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Annotated

from fastapi import Path, Request

from tasker.operations.permissions import Permission
from tasker.operations.steps import STEP, StepOperations
from tasker.server.api.tasks import TaskUuid
from tasker.server.auth.gate import actor_of, needs
from tasker.server.operation_routes import published_type, serves
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.server.shapes.steps import CompleteManually, ResetForRetry, StepManualAction
from tasker.views.model import encode
from tasker.views.steps import Attempt, Step, StepInputs

routes = router("steps")
StepUuid = Annotated[str, Path(description="The step's identifier.")]


@serves(routes, StepOperations.list_step_page)
async def list_steps(request: Request, task_uuid: str, limit: int, offset: int) -> Sequence[Step]:
    steps = await program_of(request).views.steps(task_uuid, limit=limit, offset=offset)
    return steps


@serves(routes, StepOperations.get_step)
async def get_step(request: Request, task_uuid: str, step_uuid: str) -> Step:
    return await program_of(request).views.step(task_uuid, step_uuid)


@routes.patch(
    STEP,
    response_model=published_type(Step),
    responses=refusals(404, 422),
    **needs(Permission.STEPS_RESOLVE, operates=True),
)
async def mend_step(request: Request, uuid: TaskUuid, step_uuid: StepUuid, body: StepManualAction) -> Json:
    """Run a step again, or mark it as done. 400 if the state of the step or its task does not allow it."""
    program = program_of(request)
    step = await program.views.step(uuid, step_uuid)
    await _act(request, uuid, step.name, body)
    return Json(encode(Step, await program.views.step(uuid, step_uuid)))


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


@serves(routes, StepOperations.get_step_inputs)
async def get_inputs(request: Request, task_uuid: str, step_uuid: str) -> StepInputs:
    return await program_of(request).views.inputs(task_uuid, step_uuid)


@serves(routes, StepOperations.get_step_audit_history)
async def get_audit(request: Request, task_uuid: str, step_uuid: str) -> Sequence[Attempt]:
    return await program_of(request).views.audit(task_uuid, step_uuid)
