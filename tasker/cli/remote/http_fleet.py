"""Fleet through a server: the services of `App` over HTTP."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from tasker.cli.remote.events import HttpDomainEvents
from tasker.cli.remote.tasks import HttpPlans, HttpRequests, HttpReruns, HttpSteps, HttpTasks, HttpViews
from tasker.client.calls.operations import decoded, decoded_list
from tasker.client.errors import error_of
from tasker.client.http_client import HttpClient
from tasker.errors import TaskerError
from tasker.operations.analytics import RemoteAnalytics
from tasker.operations.dead_letters import DeadLetterOperations, FailureSelection, RemoteDeadLetters, RemoteReplays
from tasker.services.audit import OperatorAction, RecordedAction
from tasker.services.fleet.brokers import BrokerReport, QueueReport
from tasker.services.fleet.doctor import DoctorFinding
from tasker.services.fleet.overview import Overview
from tasker.services.operators.pauses import PauseTarget
from tasker.services.submission.bulk import TemplateSubmission
from tasker.services.submission.starts import start_texts
from tasker.services.submission.submit import OnDuplicate, SubmissionResult
from tasker.template.plan import Plan
from tasker.views.dead_letters import DeadLetter, ReplayPlan
from tasker.views.task_lists import PauseList, ProcessRow
from tasker.views.tasks import TaskReport

ANSWERS: Mapping[OnDuplicate, Literal["refuse", "return_existing"]] = {"refuse": "refuse", "return": "return_existing"}


class HttpFleet:
    """Services of a fleet through `client`, which commands of plugins may also use directly."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self.tasks, self.steps, self.views = HttpTasks(client), HttpSteps(client), HttpViews(client)
        self.plans, self.pauses, self.workers = HttpPlans(client), HttpPauses(client), HttpWorkers(client)
        self.dead_letters, self.analytics = HttpDeadLetters(client), RemoteAnalytics(client)
        self.template_texts = HttpTemplateTexts(client)
        self.reruns, self.replays = HttpReruns(client), HttpReplays(client)
        self.fleet, self.doctor, self.queues = HttpOverview(client), HttpDoctor(client), HttpQueues(client)
        self.domain_events, self.requests = HttpDomainEvents(client), HttpRequests(client)
        self.sensitive_values, self.operator_log = CoveredByTheServer(), HttpOperatorLog(client)

    async def submit_order(
        self, order: TemplateSubmission, *, on_duplicate: OnDuplicate = "refuse"
    ) -> SubmissionResult:
        answer = await self.client.submit({**_body(order), "on_duplicate": ANSWERS[on_duplicate]})
        return SubmissionResult(answer["task_uuid"], answer["step_count"], answer["created"])

    async def submit_orders(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[SubmissionResult | TaskerError]:
        """Create up to 1,000 tasks; return a result or an error for each."""
        bodies = [_body(order) for order in orders]
        answer = await self.client.create_tasks(bodies, on_duplicate=ANSWERS[on_duplicate])
        return [_answer(result) for result in answer["results"]]

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


class HttpTemplateTexts:
    """`tasker.services.workflows.texts.TemplateTexts` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def register(self, text: str, environment: str | None = None, *, force: bool = False) -> None:
        await self._client.register_templates(text, environment=environment, force=force)


class CoveredByTheServer:
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


def _queue(each: Mapping[str, Any]) -> QueueReport:
    stats = None if each["unseen"] is None else each  # `unseen` is a number if the backend has the queue
    return decoded(QueueReport, {**each, "expected": each["in_database"], "stats": stats})


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


def _body(order: TemplateSubmission) -> dict[str, Any]:
    given = asdict(order.request) | start_texts(order.request.run_at, order.request.delay, order.request.expires_in)
    request = {name: value for name, value in given.items() if value is not None}
    return {"namespace": order.namespace, "name": order.template, "version": order.version, **request}


def _answer(result: Mapping[str, Any]) -> SubmissionResult | TaskerError:
    if result.get("problem"):
        return error_of(result["status"], result["problem"], None)
    return SubmissionResult(result["task_uuid"], result["step_count"], result["created"])
