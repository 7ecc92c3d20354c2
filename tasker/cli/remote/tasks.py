"""Tasks, steps and templates through a server, with the same results as the services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tasker.client.http_client import HttpClient
from tasker.engine.plans import EVERY, TemplateFilter
from tasker.errors import StepNotFound, TaskNotFound
from tasker.operations.operation import RemoteService
from tasker.operations.steps import StepOperations
from tasker.operations.tasks import TaskOperations
from tasker.services.workflows.targets import registered_name
from tasker.template.plan import Plan
from tasker.views.steps import Attempt, Step, StepLogLine
from tasker.views.task_lists import TaskSummary, TransitionDetail
from tasker.views.tasks import TaskReport

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import View

PAGE = 500
"""Templates that a server sends at most at once."""
LENGTH = 32
"""Hexadecimal digits of an identifier."""


class HttpTasks(RemoteService):
    """`tasker.services.tasks.read.Tasks` through a server."""

    _client: HttpClient
    progress = TaskOperations.get_task_progress
    explain = TaskOperations.explain_task
    refused = TaskOperations.list_refused_messages
    children = TaskOperations.get_task_children

    async def report(self, task_uuid: str) -> TaskReport:
        return await self._client.get_task_report(task_uuid)

    async def state(self, task_uuid: str) -> tuple[str, bool]:
        """The task's state, and whether it is final."""
        progress = await self.progress(task_uuid, datetime.now(UTC))
        return progress.status, progress.finished

    async def starting_with(self, prefix: str, *, limit: int = 10) -> Sequence[str]:
        """Return the tasks whose identifier starts with the prefix.

        A complete identifier is looked up directly, so the caller needs no permission to list tasks.
        """
        if len(prefix) < LENGTH:
            return await self._client.list_identifiers(prefix, limit=limit)
        task_uuid = str(UUID(prefix))
        try:
            await self.progress(task_uuid, datetime.now(UTC))
        except TaskNotFound:
            return []
        return [task_uuid]

    async def list(self, **which: Any) -> Sequence[TaskSummary]:
        return await self._client.list_tasks_briefly(**which)

    async def logs(self, task_uuid: str, **which: Any) -> Sequence[StepLogLine]:
        return await self._client.get_task_logs(task_uuid, **which)

    async def history(self, task_uuid: str) -> Sequence[TransitionDetail]:
        return await self._client.get_task_history(task_uuid)

    async def cancel(
        self, task_uuid: str, *, reason: str = "", actor: str | None = None, compensate: bool = False
    ) -> str:
        """Cancel the task; return its previous state."""
        answer = await self._client.cancel_task(task_uuid, reason=reason, actor=actor, compensate=compensate)
        return answer.previous_status

    async def compensate(self, task_uuid: str, *, reason: str = "", actor: str | None = None) -> None:
        await self._client.compensate_task(task_uuid, reason=reason, actor=actor)


class HttpSteps(RemoteService):
    """`tasker.services.operators.steps.Steps` through a server, which identifies steps by UUID instead of name."""

    _client: HttpClient
    retry = StepOperations.retry_task

    async def reset(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        await self._client.reset_step(task_uuid, await self._uuid(task_uuid, step), reason=reason, actor=actor)

    async def resolve(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        await self._client.resolve_step(task_uuid, await self._uuid(task_uuid, step), reason=reason, actor=actor)

    async def complete(
        self,
        task_uuid: str,
        step: str,
        result: Mapping[str, Any],
        *,
        actor: str,
        reason: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        step_uuid = await self._uuid(task_uuid, step)
        await self._client.complete_step(task_uuid, step_uuid, result, metadata=metadata, reason=reason, actor=actor)

    async def _uuid(self, task_uuid: str, step: str) -> str:
        for row in (await self._client.get_task(task_uuid)).steps:
            if row.name == step:
                return row.step_uuid
        raise StepNotFound(f"task {task_uuid} has no step {step!r}", hint="see `tasker task show`")


class HttpRequests:
    """`tasker.services.submission.by_message.TaskRequestSender` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def request(
        self,
        target: str,
        context: Mapping[str, Any] | None = None,
        *,
        task_uuid: str | None = None,
        **options: Any,
    ) -> str:
        namespace, name, version = registered_name(target)
        which: dict[str, Any] = {"namespace": namespace, "version": version, "task_uuid": task_uuid}
        return await self._client.request_task(name, context=context, **which, **options)


class HttpReruns(RemoteService):
    """`tasker.services.operators.reruns.Reruns` through a server."""

    start = TaskOperations.rerun_task


class HttpViews(RemoteService):
    """`tasker.services.tasks.search.ClientViews` through a server."""

    _client: HttpClient
    step = StepOperations.get_step
    inputs = StepOperations.get_step_inputs

    async def steps(self, task_uuid: str) -> Sequence[Step]:
        return await self._client.list_task_steps(task_uuid)

    async def audit(self, task_uuid: str, step_uuid: str | None = None) -> Sequence[Attempt]:
        if step_uuid is None:
            return await self._client.get_task_audit(task_uuid)
        return await self._client.get_step_audit_history(task_uuid, step_uuid)


class HttpPlans:
    """`tasker.engine.plans.PlanStore` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def registered(self, which: TemplateFilter = EVERY, *, limit: int = 1000) -> Sequence[View]:
        """Return registered templates in each version, page by page up to the limit."""
        templates: list[View] = []
        cursor: str | None = None
        while len(templates) < limit:
            per_page = min(PAGE, limit - len(templates))
            page = await self._client.list_templates(which.namespace, name=which.name, per_page=per_page, cursor=cursor)
            templates += [
                {
                    "namespace": row.namespace,
                    "name": row.name,
                    "version": row.version,
                    "description": row.description,
                    "steps": row.step_count,
                    "updated_at": row.updated_at,
                }
                for row in page.templates
            ]
            if (cursor := page.pagination.next_cursor) is None:
                break
        return templates

    async def of_task(self, task_uuid: str) -> Plan:
        return Plan.from_dict(await self._client.get_task_template(task_uuid))
