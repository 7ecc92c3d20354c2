"""Fleet through a server: the services of `App` over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from tasker.cli.remote.approvals import HttpApprovals
from tasker.cli.remote.events import HttpDomainEvents, HttpIncomingEvents
from tasker.cli.remote.tasks import HttpPlans, HttpRequests, HttpReruns, HttpSteps, HttpTasks, HttpViews
from tasker.client.errors import error_of
from tasker.client.http_client import HttpClient
from tasker.errors import TaskerError
from tasker.operations.analytics import RemoteAnalytics
from tasker.operations.dead_letters import DeadLetterOperations, FailureSelection, RemoteDeadLetters, RemoteReplays
from tasker.operations.fleet import FleetOperations, RemoteLimits, RemoteOverview, RemoteQueues, RemoteWorkers
from tasker.operations.operation import RemoteService
from tasker.operations.schedules import RemoteSchedules, ScheduleOperations
from tasker.operations.tasks import ON_DUPLICATE
from tasker.operations.templates import TemplateOperations
from tasker.services.audit import OperatorAction
from tasker.services.submission.starts import start_texts
from tasker.services.submission.submit import OnDuplicate, SubmissionResult
from tasker.template.plan import Plan
from tasker.views.dead_letters import DeadLetter, ReplayPlan
from tasker.views.fleet import DoctorFinding
from tasker.views.schedules import Backfill
from tasker.views.tasks import TaskReport

if TYPE_CHECKING:
    from tasker.services.operators.pauses import PauseTarget
    from tasker.services.submission.registered import TemplateSubmission

T = TypeVar("T")


class HttpFleet:
    """Services of a fleet through `client`, which commands of plugins may also use directly."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self.tasks, self.steps, self.views = HttpTasks(client), HttpSteps(client), HttpViews(client)
        self.plans, self.pauses, self.workers = HttpPlans(client), HttpPauses(client), RemoteWorkers(client)
        self.dead_letters, self.analytics = HttpDeadLetters(client), RemoteAnalytics(client)
        self.template_texts, self.schedules = HttpTemplateTexts(client), HttpSchedules(client)
        self.limits, self.deployments = RemoteLimits(client), HttpDeployments(client)
        self.reruns, self.replays = HttpReruns(client), HttpReplays(client)
        self.fleet, self.doctor, self.queues = RemoteOverview(client), HttpDoctor(client), RemoteQueues(client)
        self.submissions, self.domain_events = HttpSubmissions(client), HttpDomainEvents(client)
        self.requests, self.incoming_events = HttpRequests(client), HttpIncomingEvents(client)
        self.approvals = HttpApprovals(client)
        self.sensitive_values, self.operator_log = RedactedByServer(), HttpOperatorLog(client)

    async def pinned_plan(self, task_uuid: str) -> Plan:
        return await self.plans.of_task(task_uuid)

    async def wait(self, task_uuid: str, *, timeout: float | None = None) -> TaskReport:
        await self.client.wait(task_uuid, timeout)
        return await self.tasks.report(task_uuid)


class HttpDeadLetters(RemoteDeadLetters):
    """`tasker.services.operators.dead_letters.DeadLetters` through a server."""

    _update = DeadLetterOperations.update_dead_letter

    async def update(self, entry_uuid: str, **findings: Any) -> DeadLetter:
        await self._update(entry_uuid, **findings)
        return await self.entry(entry_uuid)


class HttpReplays(RemoteReplays):
    """`tasker.services.operators.replays.Replays` through a server."""

    _begin = DeadLetterOperations.begin_replay

    async def plan(self, group: FailureSelection) -> ReplayPlan:
        return await self._begin(group, all=not group.is_limited, dry_run=True)

    async def begin(self, group: FailureSelection, *, rate: float = 10.0, actor: str, reason: str = "") -> ReplayPlan:
        return await self._begin(group, all=not group.is_limited, rate=rate, actor=actor, reason=reason)

    async def advance(self, replay_uuid: str | None = None) -> int:
        """Do nothing: workers and orchestrators advance the replay."""
        return 0


class HttpSchedules(RemoteSchedules):
    """`tasker.services.schedules.Schedules` through a server."""

    _pause = ScheduleOperations.pause_schedule
    _resume = ScheduleOperations.resume_schedule
    _delete = ScheduleOperations.delete_schedule
    _trigger = ScheduleOperations.trigger_schedule
    _backfill = ScheduleOperations.backfill_schedule

    async def pause(self, address: str, **why: str) -> bool:
        return (await self._pause(address, **why)).changed

    async def resume(self, address: str, **why: str) -> bool:
        return (await self._resume(address, **why)).changed

    async def delete(self, address: str, **why: str) -> None:
        await self._delete(address, **why)

    async def trigger(self, address: str, **why: str) -> str:
        return (await self._trigger(address, **why)).task_uuid

    async def plan_backfill(self, address: str, begin: datetime, end: datetime) -> Backfill:
        return await self._backfill(address, begin, end, dry_run=True)

    async def backfill(self, address: str, begin: datetime, end: datetime, *, actor: str, reason: str = "") -> Backfill:
        return await self._backfill(address, begin, end, actor=actor, reason=reason)


class HttpSubmissions:
    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def submit(self, order: TemplateSubmission, *, on_duplicate: OnDuplicate = "refuse") -> SubmissionResult:
        answer = await self._client.submit({**_body(order), "on_duplicate": ON_DUPLICATE[on_duplicate]})
        return _submitted(answer)

    async def submit_many(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[SubmissionResult | TaskerError]:
        """Create up to 1,000 tasks; return a result or an error for each."""
        bodies = [_body(order) for order in orders]
        answer = await self._client.create_tasks(bodies, on_duplicate=on_duplicate)
        return [_answer(result) for result in answer["results"]]


class HttpTemplateTexts(RemoteService):
    """`tasker.services.workflows.texts.TemplateTexts` through a server."""

    register = TemplateOperations.register_templates
    detail = TemplateOperations.get_template


class HttpDeployments(RemoteService):
    """`tasker.services.workflows.deployments.Deployments` through a server."""

    plan = TemplateOperations.plan_templates
    apply = TemplateOperations.apply_templates


class RedactedByServer:
    """`tasker.services.viewer.SensitiveValues` through a server, which redacts its responses."""

    async def redacted(self, task_uuid: str, answer: T) -> T:
        """Return the answer: nothing is left to redact."""
        return answer


class HttpOperatorLog(RemoteService):
    """`tasker.services.audit.AuditLog` through a server, which records its requests itself."""

    list = FleetOperations.list_operator_actions

    async def asked(self, action: OperatorAction, status: int | None = None) -> str:
        """Do nothing: the request that follows names the actor."""
        return action.request_id

    async def answered(self, row: str, status: int) -> None:
        """Do nothing: the server records its own response."""

    async def failed(self, row: str, status: int, reason: str | None) -> None:
        """Do nothing: the server records its own response."""

    async def not_done(self, action: OperatorAction, row: str | None, status: int | None, reason: str | None) -> None:
        """Do nothing: the server records its own response."""


class HttpPauses(RemoteService):
    """`tasker.services.operators.pauses.Pauses` through a server."""

    list = FleetOperations.list_pauses
    _pause = FleetOperations.pause
    _resume = FleetOperations.resume

    async def pause(self, target: PauseTarget, *, actor: str, reason: str) -> bool:
        return (await self._pause(**_named(target), actor=actor, reason=reason)).paused

    async def resume(self, target: PauseTarget, *, actor: str, reason: str = "") -> int | None:
        return (await self._resume(**_named(target), actor=actor, reason=reason)).held


def _named(target: PauseTarget) -> dict[str, str]:
    """Return the target as the one parameter that names it."""
    kind = next(name for name in ("task", "queue", "step", "template", "namespace") if getattr(target, name))
    return {kind: str(target)}


class HttpDoctor(RemoteService):
    """`tasker.services.fleet.doctor.Doctor` through a server."""

    _report = FleetOperations.doctor

    async def findings(self) -> Sequence[DoctorFinding]:
        return (await self._report()).findings


def _body(order: TemplateSubmission) -> dict[str, Any]:
    given = asdict(order.request) | start_texts(
        order.request.run_at, order.request.delay, order.request.expires_in, order.request.deadline
    )
    request = {name: value for name, value in given.items() if value is not None}
    return {"namespace": order.namespace, "name": order.template, "version": order.version, **request}


def _answer(result: Mapping[str, Any]) -> SubmissionResult | TaskerError:
    if result.get("problem"):
        return error_of(result["status"], result["problem"], None)
    return _submitted(result)


def _submitted(answer: Mapping[str, Any]) -> SubmissionResult:
    existing = {name: bool(answer.get(name)) for name in ("unique", "debounced")}  # an earlier release lacks them
    return SubmissionResult(answer["task_uuid"], answer["step_count"], answer["created"], **existing)
