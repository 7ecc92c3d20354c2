"""Tasks, steps and templates through a server, with the same results as the services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tasker.cli.remote.decoding import decoded, decoded_list
from tasker.client.http_client import HttpClient
from tasker.engine.plans import EVERY, TemplateFilter
from tasker.errors import StepNotFound, TaskNotFound
from tasker.services.operators.reruns import StartedRerun
from tasker.services.operators.steps import RetriedSteps
from tasker.services.tasks.explain import Explained, Explanation
from tasker.services.tasks.logs import StepLogLine
from tasker.services.workflows.targets import registered_name
from tasker.template.plan import Plan
from tasker.views.progress import TaskProgress
from tasker.views.task_lists import RefusedMessage, TaskSummary, TransitionDetail
from tasker.views.tasks import TaskReport

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import View

PAGE = 500
"""Templates that a server sends at most at once."""
LENGTH = 32
"""Hexadecimal digits of an identifier."""


class HttpTasks:
    """`tasker.services.tasks.read.Tasks` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def report(self, task_uuid: str) -> TaskReport:
        return decoded(TaskReport, await self._client.get_task_report(task_uuid))

    async def state(self, task_uuid: str) -> tuple[str, bool]:
        """The task's state, and whether it is final."""
        progress = await self.progress(task_uuid, datetime.now(UTC))
        return progress.status, progress.finished

    async def progress(self, task_uuid: str, since: datetime | None = None) -> TaskProgress:
        moment = since.isoformat() if since else None
        return decoded(TaskProgress, await self._client.get_task_progress(task_uuid, moment))

    async def explain(self, task_uuid: str, step: str | None = None, *, names: int = 5) -> Explanation:
        answer = await self._client.explain_task(task_uuid, step, names=names)
        data = {**answer, "alive": answer["processes_at_work"], "more": answer["more_reasons"], "reasons": ()}
        explanation = decoded(Explanation, data)
        more = {"task_uuid": explanation.task_uuid, "at": answer["at"], "alive": explanation.alive}
        reasons = [
            decoded(Explained, {**reason, **more, "of": reason["template_steps"]}) for reason in answer["reasons"]
        ]
        return replace(explanation, reasons=reasons)

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

    async def list(
        self, *, since: datetime | None = None, until: datetime | None = None, **which: Any
    ) -> Sequence[TaskSummary]:
        which |= {"since": since.isoformat() if since else None, "until": until.isoformat() if until else None}
        return decoded_list(TaskSummary, await self._client.list_tasks_briefly(**which))

    async def history(self, task_uuid: str) -> Sequence[TransitionDetail]:
        return decoded_list(TransitionDetail, await self._client.get_task_history(task_uuid))

    async def logs(self, task_uuid: str, *, since: datetime | None = None, **which: Any) -> Sequence[StepLogLine]:
        moment = since.isoformat() if since else None
        return decoded_list(StepLogLine, await self._client.get_task_logs(task_uuid, since=moment, **which))

    async def refused(self, *, queue: str | None = None, limit: int = 50) -> Sequence[RefusedMessage]:
        return decoded_list(RefusedMessage, await self._client.list_refused_messages(queue=queue, limit=limit))

    async def cancel(self, task_uuid: str, *, reason: str = "", actor: str = "") -> str:
        """Cancel the task; return its previous state."""
        return str((await self._client.cancel_task(task_uuid, reason=reason))["previous_status"])


class HttpSteps:
    """`tasker.services.operators.steps.Steps` through a server, which identifies steps by UUID instead of name."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def reset(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        await self._client.reset_step(task_uuid, await self._uuid(task_uuid, step), reason=reason, by=actor)

    async def resolve(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        await self._client.resolve_step(task_uuid, await self._uuid(task_uuid, step), reason=reason, by=actor)

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
        step_uuid, more = await self._uuid(task_uuid, step), {"reason": reason, "by": actor}
        await self._client.complete_step(task_uuid, step_uuid, result, metadata=metadata, **more)

    async def retry(self, task_uuid: str, *, actor: str, reason: str) -> RetriedSteps:
        return decoded(RetriedSteps, await self._client.retry_task(task_uuid, reason=reason, by=actor))

    async def _uuid(self, task_uuid: str, step: str) -> str:
        for row in (await self._client.get_task(task_uuid)).steps:
            if row["name"] == step:
                return str(row["workflow_step_uuid"])
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


class HttpReruns:
    """`tasker.services.operators.reruns.Reruns` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def start(
        self, task_uuid: str, step: str, *, actor: str, reason: str, changes: Mapping[str, Any] | None = None
    ) -> StartedRerun:
        rerun = self._client.rerun_task
        return decoded(StartedRerun, await rerun(task_uuid, step, changes=changes, reason=reason, by=actor))


class HttpViews:
    """`tasker.services.tasks.search.ClientViews` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def steps(self, task_uuid: str) -> Sequence[View]:
        return [_view(step) for step in await self._client.list_step_data(task_uuid)]

    async def step(self, task_uuid: str, step_uuid: str) -> View:
        return _view(await self._client.get_step_data(task_uuid, step_uuid))

    async def inputs(self, task_uuid: str, step_uuid: str) -> View:
        return await self._client.get_step_inputs(task_uuid, step_uuid)

    async def audit(self, task_uuid: str, step_uuid: str | None = None) -> Sequence[View]:
        return await self._client.get_task_audit(task_uuid, step_uuid)


def _view(step: Mapping[str, Any]) -> View:
    """Return the step without the duplicate of its identifier."""
    return {name: value for name, value in step.items() if name != "workflow_step_uuid"}


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
            templates += [_registered(row) for row in page["templates"]]
            if (cursor := page["pagination"]["next_cursor"]) is None:
                break
        return templates

    async def of_task(self, task_uuid: str) -> Plan:
        return Plan.from_dict(await self._client.get_task_template(task_uuid))


def _registered(row: Mapping[str, Any]) -> View:
    named = {name: row[name] for name in ("namespace", "name", "version", "description")}
    return {**named, "steps": row["step_count"], "updated_at": datetime.fromisoformat(row["updated_at"])}
