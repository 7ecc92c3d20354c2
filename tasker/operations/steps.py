"""Operations of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from tasker.operations.operation import Body, Endpoint, Param
from tasker.operations.permissions import Permission
from tasker.views.steps import Attempt, RetriedSteps, Step, StepInputs

MOST_STEPS = 1000
"""Maximum number of rows in one answer."""

Task = Annotated[str, Param("uuid", description="The task's identifier.")]
Why = Annotated[str, Param(max_length=1024)]
Actor = Annotated[str | None, Param(max_length=1024)]
StepUuid = Annotated[str, Param(description="The step's identifier.")]
STEPS = "/v1/tasks/{uuid}/workflow_steps"
STEP = STEPS + "/{step_uuid}"
RETRY = Body("RetryRequest", "Reason and actor of a retry of failed steps.")


class StepOperations:
    """Operations of steps, as clients have them."""

    @Endpoint("GET", STEPS, Permission.STEPS_READ, "views.steps", errors=(404,))
    async def list_step_page(
        self,
        task_uuid: Task,
        *,
        limit: Annotated[int, Param(at_least=1, at_most=MOST_STEPS)] = MOST_STEPS,
        offset: Annotated[int, Param(at_least=0, at_most=100_000_000)] = 0,
    ) -> Sequence[Step]:
        """Return a page of the steps of a task with their results, in topological order.

        Raises `TaskNotFound`.
        """

    @Endpoint("GET", STEP, Permission.STEPS_READ, "views.step", errors=(404,))
    async def get_step(self, task_uuid: Task, step_uuid: StepUuid) -> Step:
        """Return one step with its result.

        Raises `TaskNotFound`, `StepNotFound`.
        """

    @Endpoint("GET", STEP + "/inputs", Permission.STEPS_READ, "views.inputs", errors=(404,))
    async def get_step_inputs(self, task_uuid: Task, step_uuid: StepUuid) -> StepInputs:
        """Return the input of a step's handler, with its expressions evaluated.

        Raises `TaskNotFound`, `StepNotFound`.
        """

    @Endpoint("GET", STEP + "/audit", Permission.STEPS_READ, "views.audit", errors=(404,))
    async def get_step_audit_history(self, task_uuid: Task, step_uuid: StepUuid) -> Sequence[Attempt]:
        """Return the stored results of a step with their authors, newest first.

        Raises `TaskNotFound`, `StepNotFound`.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/audit", Permission.STEPS_READ, "views.audit", errors=(404,))
    async def get_task_audit(self, task_uuid: Task) -> Sequence[Attempt]:
        """Return every stored result of a task's steps with its author, newest first.

        Raises `TaskNotFound`.
        """

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
