"""Explanation of why a task does not proceed."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated

from fastapi import Query, Request

from tasker.api.covering import redact_answer
from tasker.api.json_response import Json
from tasker.api.permissions import Permission, needs
from tasker.api.routes.route import program_of, router
from tasker.api.routes.tasks import TaskUuid
from tasker.api.shapes.explanation import ExplanationResponse
from tasker.api.shapes.problems import refusals

routes = router("tasks")
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
    found = await program_of(request).tasks.explain(uuid, step, names=names)
    reasons = [{**each.to_dict(UTC), "template_steps": each.of} for each in found.reasons]
    return Json(await redact_answer(request, uuid, {**found.to_dict(UTC), "reasons": reasons}))
