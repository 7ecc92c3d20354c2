"""Operations of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from tasker.operations.operation import Body, Endpoint, Param
from tasker.operations.permissions import Permission
from tasker.views.children import TaskFamily
from tasker.views.explanation import Explanation
from tasker.views.progress import TaskProgress
from tasker.views.steps import StartedRerun, StepLogLine
from tasker.views.task_details import TaskContext, TaskDetails
from tasker.views.task_lists import RefusedMessage, TaskSummary, TransitionDetail
from tasker.views.tasks import Task, TaskCancelled, TaskPage, TaskReport

MOST_STEPS = 1000
"""Maximum number of steps in one answer; `more_steps` is the number of those that follow."""
MOST_IDENTIFIERS = 100
MOST_CHILDREN = 500
"""Maximum number of children of a task in one answer."""
OnDuplicate = Literal["refuse", "return"]
ON_DUPLICATE: Mapping[OnDuplicate, str] = {"refuse": "refuse", "return": "return_existing"}
"""Published values of `on_duplicate`: what to do if a task with the same identity exists."""
PREFIX = r"^[0-9a-fA-F-]{1,36}$"
"""Beginning of an identifier: hexadecimal digits, with or without hyphens."""

TaskUuid = Annotated[str, Param("uuid", description="The task's identifier.")]
Name = Annotated[str | None, Param(max_length=255)]
Identifier = Annotated[str | None, Param(form="uuid")]
Key = Annotated[str | None, Param(max_length=255, description="Only the task with this key.")]
Outcome = Annotated[
    Literal["partial", "compensating", "compensated", "compensation_failed"] | None,
    Param(
        description="`partial`: tasks that are complete without some of their steps. The others: tasks whose effects "
        "are being undone, were undone, or could not be undone."
    ),
]
WaitingFor = Annotated[
    Literal["time", "event", "person"] | None,
    Param(description="Only tasks with a step that waits for that, without a worker."),
]
Tags = Annotated[Sequence[str], Param("tag", max_length=20, description="Repeatable: tasks that have all of them.")]
Steps = Annotated[int, Param(at_least=1, at_most=MOST_STEPS)]
Offset = Annotated[int, Param(at_least=0, at_most=100_000_000)]
FarOffset = Annotated[int, Param(at_least=0, at_most=10_000_000)]
Text = Annotated[str, Param(max_length=1024)]
Actor = Annotated[str | None, Param(max_length=1024)]


class TaskOperations:
    """Operations of tasks, as clients have them."""

    @Endpoint("GET", "/v1/tasks/{uuid}", Permission.TASKS_READ, "views.task", errors=(404,))
    async def get_task_page(
        self,
        task_uuid: TaskUuid,
        *,
        wait: Annotated[
            float | None,
            Param(
                form="seconds",
                description="Wait until the task has ended, at most this long: `10s`, `500ms`, `2m`; at most `5m`.",
            ),
        ] = None,
        limit: Annotated[
            int,
            Param("steps_limit", at_least=1, at_most=MOST_STEPS, description="Maximum number of steps in the answer."),
        ] = MOST_STEPS,
        offset: Annotated[
            int,
            Param("steps_offset", at_least=0, at_most=100_000_000, description="Number of steps to skip."),
        ] = 0,
    ) -> Task:
        """Return a task with a page of its steps; `more_steps` is the number of those that follow.

        Raises `TaskNotFound`.
        """

    @Endpoint("DELETE", "/v1/tasks/{uuid}", Permission.TASKS_CANCEL, "tasks.cancel", operates=True, errors=(404,))
    async def cancel_task(
        self,
        task_uuid: TaskUuid,
        *,
        reason: Text = "",
        actor: Annotated[
            str | None,
            Param(max_length=255, description="Actor recorded in the audit log; defaults to the authenticated name."),
        ] = None,
        compensate: Annotated[
            bool, Param(description="Undo the effects of its complete steps before the task ends.")
        ] = False,
    ) -> TaskCancelled:
        """Cancel a task and all its steps that have not ended; 400 if the task has ended.

        Steps of `finally` run before it ends.

        Raises `TaskNotFound`, and `StateMachineError` if it has already ended, or is to be compensated and already is.
        """

    @Endpoint(
        "POST",
        "/v1/tasks/{uuid}/compensate",
        Permission.TASKS_CANCEL,
        "tasks.compensate",
        operates=True,
        body=Body("CompensateRequest", "Reason and actor of a compensation."),
        errors=(404,),
    )
    async def compensate_task(self, task_uuid: TaskUuid, *, reason: Text = "", actor: Actor = None) -> Task:
        """Undo the effects of the complete steps of a task that failed, in reverse order; 400 if it has not failed.

        Raises `TaskNotFound`, and `StateMachineError` if there is nothing to undo, or it is or was undone.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/explain", Permission.TASKS_READ, "tasks.explain", errors=(404,))
    async def explain_task(
        self,
        task_uuid: TaskUuid,
        step: Annotated[
            str | None,
            Param(max_length=255, description="Only this step, ended or not, or the instances of this batch worker."),
        ] = None,
        *,
        names: Annotated[
            int, Param(at_least=1, at_most=100, description="Maximum number of steps named for each reason.")
        ] = 5,
    ) -> Explanation:
        """Return, for each step that has not ended, why it does not run now and what would change it.

        Raises `TaskNotFound`, `StepNotFound`.
        """

    @Endpoint("GET", "/v1/tasks", Permission.TASKS_LIST, "views.task_page", confines=True, tenants=True)
    async def list_tasks(
        self,
        *,
        namespace: Name = None,
        status: Annotated[str | None, Param(max_length=255, description="A task's state, such as `complete`.")] = None,
        template: Annotated[str | None, Param("name", max_length=255, description="Name of the template.")] = None,
        version: Name = None,
        initiator: Name = None,
        source_system: Name = None,
        tenant: Name = None,
        outcome: Outcome = None,
        waiting_for: WaitingFor = None,
        tags: Tags = (),
        correlation_id: Identifier = None,
        idempotency_key: Key = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        sort: Annotated[
            Literal["-created_at", "created_at"], Param(description="Order: newest first, or oldest first.")
        ] = "-created_at",
        page: Annotated[int, Param(at_least=0, at_most=100_000, description="Number of the page, from 0.")] = 0,
        per_page: Annotated[int, Param(at_least=1, at_most=500)] = 50,
        cursor: Annotated[
            str | None,
            Param(
                max_length=200,
                description="`pagination.next_cursor` of the previous page: the cost does "
                "not grow with the page, and no task is repeated; `page` and the counts are omitted.",
            ),
        ] = None,
    ) -> TaskPage:
        """Return tasks by creation time, without their steps; counted to 10,000.

        A page costs no more for many tasks. With a tag, an initiator or a source that many have, beside other filters,
        it may hold fewer tasks than asked for, or none, and say `has_next`: send `next_cursor` to look on.

        Raises `UsageError` for an unknown state and an invalid cursor.
        """

    @Endpoint(
        "GET",
        "/v1/tasks/{uuid}/children",
        Permission.TASKS_READ,
        "tasks.children",
        confines=True,
        tenants=True,
        errors=(404,),
    )
    async def get_task_children(
        self,
        task_uuid: TaskUuid,
        *,
        step: Annotated[
            str | None, Param(max_length=255, description="Only the tasks that this step has started.")
        ] = None,
        after: Annotated[
            str | None, Param(form="uuid", description="`next_after` of the previous page: the tasks after it.")
        ] = None,
        limit: Annotated[int, Param(at_least=1, at_most=MOST_CHILDREN)] = 50,
    ) -> TaskFamily:
        """Return the step that started a task, and a page of the tasks that its own steps have started.

        Raises `TaskNotFound`.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/context", Permission.TASKS_CONTEXT_READ, "views.context", errors=(404,))
    async def get_task_context(self, task_uuid: TaskUuid) -> TaskContext:
        """Return the input of a task and the state of its execution.

        Raises `TaskNotFound`.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/details", Permission.TASKS_READ, "views.details", errors=(404,))
    async def get_task_details(self, task_uuid: TaskUuid) -> TaskDetails:
        """Return a task with the results of its steps and its history: at most 1,000 steps and 10,000 transitions.

        `task.more_steps` says how many steps follow: `/v1/tasks/{uuid}/report` and `/history` have the others.

        Raises `TaskNotFound`.
        """

    @Endpoint("GET", "/v1/listings/tasks", Permission.TASKS_LIST, "tasks.list", confines=True, tenants=True)
    async def list_task_summaries(
        self,
        *,
        namespace: Name = None,
        template: Name = None,
        status: Name = None,
        since: datetime | None = None,
        tags: Tags = (),
        limit: Annotated[int, Param(at_least=1, at_most=1000)] = 50,
        offset: FarOffset = 0,
        version: Name = None,
        initiator: Name = None,
        source_system: Name = None,
        tenant: Name = None,
        outcome: Outcome = None,
        waiting_for: WaitingFor = None,
        correlation_id: Identifier = None,
        idempotency_key: Key = None,
        fingerprint: Annotated[
            str | None, Param(max_length=64, description="Only tasks with this failure, as shown in dead letters.")
        ] = None,
        until: Annotated[datetime | None, Param(description="Only tasks created before this time.")] = None,
        open: Annotated[bool, Param(description="Only tasks that have not ended.")] = False,
        oldest_first: bool = False,
        field: Annotated[
            str | None, Param(max_length=2000, description="Condition on the input, such as `order.id = 7`.")
        ] = None,
    ) -> Sequence[TaskSummary]:
        """Return tasks, newest first, with their step counts and what holds them back."""

    @Endpoint(
        "GET", "/v1/listings/identifiers", Permission.TASKS_LIST, "tasks.starting_with", confines=True, tenants=True
    )
    async def list_identifiers(
        self,
        prefix: Annotated[str, Param("beginning", pattern=PREFIX, description="Prefix of the identifiers.")],
        *,
        limit: Annotated[int, Param(at_least=1, at_most=MOST_IDENTIFIERS)] = 10,
    ) -> Sequence[str]:
        """Return the identifiers of tasks that start with a prefix, newest first."""

    @Endpoint("GET", "/v1/tasks/{uuid}/report", Permission.TASKS_READ, "tasks.report", errors=(404,))
    async def get_report_page(
        self, task_uuid: TaskUuid, *, limit: Steps = MOST_STEPS, offset: Offset = 0
    ) -> TaskReport:
        """Return a task with a page of its steps: results, failed attempts, and what each step waits for.

        `more_steps` says how many follow.

        Raises `TaskNotFound`.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/history", Permission.TASKS_READ, "tasks.history", errors=(404,))
    async def get_history_page(
        self,
        task_uuid: TaskUuid,
        *,
        limit: Annotated[int, Param(at_least=1, at_most=10_000)] = 1000,
        offset: FarOffset = 0,
    ) -> Sequence[TransitionDetail]:
        """Return a page of the transitions of a task and its steps in order, with author and reason.

        Raises `TaskNotFound`.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/progress", Permission.TASKS_READ, "tasks.progress", errors=(404,))
    async def get_task_progress(
        self,
        task_uuid: TaskUuid,
        since: Annotated[
            datetime | None, Param(description="Only steps that have changed since this time, or are running.")
        ] = None,
    ) -> TaskProgress:
        """Return the progress of a task, for views that poll.

        Raises `TaskNotFound`.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/logs", Permission.TASKS_READ, "tasks.logs", errors=(404,))
    async def get_task_logs(
        self,
        task_uuid: TaskUuid,
        *,
        step: Annotated[
            str | None,
            Param(max_length=255, description="A name, a UUID, or a batch worker's name in the template."),
        ] = None,
        attempt: Annotated[int | None, Param(at_least=1, at_most=1_000_000)] = None,
        level: Annotated[Literal["debug", "info", "warning", "error"], Param(description="Minimum level.")] = "debug",
        since: datetime | None = None,
        after: Annotated[
            str | None, Param(max_length=120, description="The `place` of the last line of the previous page.")
        ] = None,
        limit: Annotated[int, Param(at_least=1, at_most=10_000)] = 1000,
    ) -> Sequence[StepLogLine]:
        """Return what the handlers of a task logged and printed, ordered by time. A line is stored within seconds.

        Raises `TaskNotFound`, `UsageError`.
        """

    @Endpoint("GET", "/v1/tasks/{uuid}/template", Permission.TASKS_READ, "views.template", errors=(404,))
    async def get_task_template(self, task_uuid: TaskUuid) -> Mapping[str, Any]:
        """Return the compiled template that a task is pinned to.

        Raises `TaskNotFound`.
        """

    @Endpoint(
        "POST",
        "/v1/tasks/{uuid}/rerun",
        Permission.TASKS_CREATE,
        "reruns.start",
        operates=True,
        body=Body("RerunRequest", "First step, input (by default the task's own), reason and actor of a rerun."),
        status=201,
        errors=(404, 422),
    )
    async def rerun_task(
        self,
        task_uuid: TaskUuid,
        step: Annotated[
            str | None,
            Param(
                "from_step",
                max_length=1024,
                description="Default: the first failed step, or the first step.",
            ),
        ] = None,
        *,
        context: Annotated[Mapping[str, Any] | None, Param(description="The whole input of the new task.")] = None,
        changes: Annotated[
            Mapping[str, Any] | None,
            Param(
                "set",
                max_length=100,
                description="Values for single fields of the input, by their paths, such as `address.zip`.",
            ),
        ] = None,
        reason: Text = "",
        actor: Actor = None,
    ) -> StartedRerun:
        """Run a task again from one of its steps, as a new task. It reuses the results above that step; this task is
        unchanged.

        Raises `TaskNotFound`, `StepNotFound`, `InputInvalid`, `StateMachineError`.
        """

    @Endpoint("GET", "/v1/refused-messages", Permission.DATA_READ_SENSITIVE, "tasks.refused")
    async def list_refused_messages(
        self, *, queue: Name = None, limit: Annotated[int, Param(at_least=1, at_most=1000)] = 50
    ) -> Sequence[RefusedMessage]:
        """Return messages that could not be processed, with the reason, newest first. They may contain the input of any
        task."""
