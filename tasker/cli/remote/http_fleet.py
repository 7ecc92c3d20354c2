"""Fleet through a server: the services of `App` over HTTP."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from tasker.cli.remote.dead_letters import HttpDeadLetters, HttpReplays
from tasker.cli.remote.decoding import decoded, decoded_list
from tasker.cli.remote.events import HttpDomainEvents
from tasker.cli.remote.schedules import HttpSchedules
from tasker.cli.remote.tasks import HttpPlans, HttpRequests, HttpReruns, HttpSteps, HttpTasks, HttpViews
from tasker.client.errors import error_of
from tasker.client.http_client import HttpClient
from tasker.errors import TaskerError
from tasker.services.audit import OperatorAction, RecordedAction
from tasker.services.fleet.analytics import Bottlenecks, Performance, SlowItem, VersionHistory
from tasker.services.fleet.brokers import BrokerReport, QueueReport
from tasker.services.fleet.doctor import DoctorFinding
from tasker.services.fleet.limits import KEYS, LimitUse
from tasker.services.fleet.overview import Overview
from tasker.services.fleet.scaling import BY_DEFAULT, ScalingAdvice, ScalingSettings
from tasker.services.submission.starts import start_texts
from tasker.services.submission.submit import OnDuplicate, SubmissionResult
from tasker.template.plan import Plan
from tasker.views.task_lists import PauseList, ProcessRow
from tasker.views.tasks import TaskReport

if TYPE_CHECKING:
    from tasker.services.operators.pauses import PauseTarget
    from tasker.services.submission.registered import TemplateSubmission

ANSWERS: Mapping[OnDuplicate, Literal["refuse", "return_existing"]] = {"refuse": "refuse", "return": "return_existing"}


class HttpFleet:
    """Services of a fleet through `client`, which commands of plugins may also use directly."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self.tasks, self.steps, self.views = HttpTasks(client), HttpSteps(client), HttpViews(client)
        self.plans, self.pauses, self.workers = HttpPlans(client), HttpPauses(client), HttpWorkers(client)
        self.dead_letters, self.analytics = HttpDeadLetters(client), HttpAnalytics(client)
        self.template_texts, self.schedules = HttpTemplateTexts(client), HttpSchedules(client)
        self.limits = HttpLimits(client)
        self.reruns, self.replays = HttpReruns(client), HttpReplays(client)
        self.fleet, self.doctor, self.queues = HttpOverview(client), HttpDoctor(client), HttpQueues(client)
        self.submissions, self.domain_events = HttpSubmissions(client), HttpDomainEvents(client)
        self.requests = HttpRequests(client)
        self.sensitive_values, self.operator_log = RedactedByServer(), HttpOperatorLog(client)

    async def pinned_plan(self, task_uuid: str) -> Plan:
        return await self.plans.of_task(task_uuid)

    async def wait(self, task_uuid: str, *, timeout: float | None = None) -> TaskReport:
        await self.client.wait(task_uuid, timeout)
        return await self.tasks.report(task_uuid)


class HttpSubmissions:
    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def submit(self, order: TemplateSubmission, *, on_duplicate: OnDuplicate = "refuse") -> SubmissionResult:
        answer = await self._client.submit({**_body(order), "on_duplicate": ANSWERS[on_duplicate]})
        return SubmissionResult(answer["task_uuid"], answer["step_count"], answer["created"])

    async def submit_many(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[SubmissionResult | TaskerError]:
        """Create up to 1,000 tasks; return a result or an error for each."""
        bodies = [_body(order) for order in orders]
        answer = await self._client.create_tasks(bodies, on_duplicate=ANSWERS[on_duplicate])
        return [_answer(result) for result in answer["results"]]


class HttpTemplateTexts:
    """`tasker.services.workflows.texts.TemplateTexts` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def register(self, text: str, environment: str | None = None, *, force: bool = False) -> None:
        await self._client.register_templates(text, environment=environment, force=force)


class RedactedByServer:
    """`tasker.services.viewer.SensitiveValues` through a server, which redacts its responses."""

    async def veil(self, task_uuid: str, permitted: Collection[str] | None) -> None:
        """Return None: nothing is left to redact."""


class HttpOperatorLog:
    """`tasker.services.audit.AuditLog` through a server, which records its requests itself."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def asked(self, action: OperatorAction, status: int | None = None) -> str:
        """Do nothing: the request that follows names the actor."""
        return action.request_id

    async def answered(self, row: str, status: int) -> None:
        """Do nothing: the server records its own response."""

    async def failed(self, row: str, status: int, reason: str | None) -> None:
        """Do nothing: the server records its own response."""

    async def not_done(self, action: OperatorAction, row: str | None, status: int | None, reason: str | None) -> None:
        """Do nothing: the server records its own response."""

    async def list(
        self, *, actor: str | None = None, since: datetime | None = None, limit: int = 50
    ) -> Sequence[RecordedAction]:
        moment = since.isoformat() if since else None
        return decoded_list(
            RecordedAction, await self._client.list_operator_actions(actor=actor, since=moment, limit=limit)
        )


class HttpPauses:
    """`tasker.services.operators.pauses.Pauses` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def pause(self, target: PauseTarget, *, actor: str, reason: str) -> bool:
        return await self._client.pause(**{_kind(target): str(target)}, actor=actor, reason=reason)

    async def resume(self, target: PauseTarget, *, actor: str, reason: str = "") -> int | None:
        return await self._client.resume(**{_kind(target): str(target)}, actor=actor, reason=reason)

    async def list(self, *, log: int = 20) -> PauseList:
        return decoded(PauseList, await self._client.list_pauses(log=log))


def _kind(target: PauseTarget) -> str:
    """Return the parameter that names the target."""
    return next(name for name in ("task", "queue", "step", "template", "namespace") if getattr(target, name))


class HttpLimits:
    """`tasker.services.fleet.limits.Limits` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def list(self, name: str | None = None, *, keys: int = KEYS) -> Sequence[LimitUse]:
        return [LimitUse.parse(row) for row in await self._client.list_limits(name, keys=keys)]


class HttpWorkers:
    """`tasker.services.fleet.overview.Workers` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def list(self, *, stopped: bool = False) -> Sequence[ProcessRow]:
        return decoded_list(ProcessRow, await self._client.list_workers(stopped=stopped))


class HttpQueues:
    """`tasker.services.fleet.brokers.Queues` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def report(self) -> BrokerReport:
        response = await self._client.list_queues()
        return decoded(BrokerReport, {**response, "queues": tuple(_queue(queue) for queue in response["queues"])})


def _queue(row: Mapping[str, Any]) -> QueueReport:
    stats = None if row["unseen"] is None else row  # `unseen` is a number if the backend has the queue
    return decoded(QueueReport, {**row, "expected": row["in_database"], "stats": stats})


class HttpOverview:
    """`tasker.services.fleet.overview.FleetOverview` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def overview(self) -> Overview:
        return decoded(Overview, await self._client.overview())


class HttpDoctor:
    """`tasker.services.fleet.doctor.Doctor` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def findings(self) -> Sequence[DoctorFinding]:
        return decoded_list(DoctorFinding, (await self._client.doctor())["findings"])


class HttpAnalytics:
    """`tasker.services.fleet.analytics.Analytics` through a server, which uses the published names."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def performance(self, *, hours: float = 1.0) -> Performance:
        response = await self._client.performance(hours=round(hours))
        names = {
            "total": "total_tasks",
            "active": "active_tasks",
            "completed": "completed_tasks",
            "failed": "failed_tasks",
            "task_seconds": "average_task_duration_seconds",
            "step_seconds": "average_step_duration_seconds",
            "health": "system_health_score",
        }
        return decoded(Performance, {**response, **{name: response[published] for name, published in names.items()}})

    async def versions(self, namespace: str, template: str) -> Sequence[VersionHistory]:
        return decoded_list(VersionHistory, await self._client.template_history(namespace, template))

    async def bottlenecks(self, *, hours: float = 24.0, limit: int = 10, min_executions: int = 1) -> Bottlenecks:
        response = await self._client.bottlenecks(hours=round(hours), limit=limit, min_executions=min_executions)
        used = response["resource_utilization"]
        steps, tasks = ([_slow(row) for row in response[kind]] for kind in ("slow_steps", "slow_tasks"))
        return Bottlenecks(steps, tasks, used["system_health"], used["database_pool_utilization"])

    async def scaling(self, settings: ScalingSettings = BY_DEFAULT) -> Sequence[ScalingAdvice]:
        return decoded_list(ScalingAdvice, await self._client.scaling(**asdict(settings)))


def _slow(row: Mapping[str, Any]) -> SlowItem:
    return SlowItem(
        namespace=row["namespace_name"],
        template=row["task_name"],
        version=row["version"],
        executions=row["execution_count"],
        errors=row["error_count"],
        mean_seconds=row["average_duration_seconds"],
        max_seconds=row["max_duration_seconds"],
        last_at=row["last_executed_at"] and datetime.fromisoformat(row["last_executed_at"]),
        step=row.get("step_name"),
        mean_steps=row.get("average_step_count", 0.0),
    )


def _body(order: TemplateSubmission) -> dict[str, Any]:
    given = asdict(order.request) | start_texts(
        order.request.run_at, order.request.delay, order.request.expires_in, order.request.deadline
    )
    request = {name: value for name, value in given.items() if value is not None}
    return {"namespace": order.namespace, "name": order.template, "version": order.version, **request}


def _answer(result: Mapping[str, Any]) -> SubmissionResult | TaskerError:
    if result.get("problem"):
        return error_of(result["status"], result["problem"], None)
    return SubmissionResult(result["task_uuid"], result["step_count"], result["created"])
