"""Operations of steps."""

from __future__ import annotations

from typing import Annotated

from tasker.operations.operation import Body, Endpoint, Param
from tasker.operations.permissions import Permission
from tasker.views.steps import RetriedSteps

Task = Annotated[str, Param("uuid", description="The task's identifier.")]
Why = Annotated[str, Param(max_length=1024)]
Actor = Annotated[str | None, Param(max_length=1024)]
RETRY = Body("RetryRequest", "Reason and actor of a retry of failed steps.")


class StepOperations:
    """Operations of steps, as clients have them."""

    @Endpoint(
        "POST",
        "/v1/tasks/{uuid}/retry",
        Permission.STEPS_RESOLVE,
        "steps.retry",
        operates=True,
        body=RETRY,
        errors=(404,),
    )
    async def retry_task(self, task_uuid: Task, *, reason: Why = "", actor: Actor = None) -> RetriedSteps:
        """Run every failed step of a task again, in one transaction; 400 for a cancelled task.

        Raises `TaskNotFound`, and `StateMachineError` for a cancelled task.
        """
