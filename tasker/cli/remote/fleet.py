"""Services that commands use, implemented by `App` on a database and by `HttpFleet` through a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, Unpack

from tasker.cli.remote.dead_letters import DeadLetterService, ReplayService
from tasker.cli.remote.schedules import ScheduleService
from tasker.engine.plans import TemplateFilter
from tasker.errors import TaskerError
from tasker.redaction import Redactor
from tasker.services.audit import OperatorAction, RecordedAction
from tasker.services.event_subscriptions import Subscription
from tasker.services.fleet.analytics import Bottlenecks, Performance, VersionHistory
from tasker.services.fleet.brokers import BrokerReport
from tasker.services.fleet.doctor import DoctorFinding
from tasker.services.fleet.limits import LimitUse
from tasker.services.fleet.overview import Overview
from tasker.services.fleet.scaling import ScalingAdvice, ScalingSettings
from tasker.services.operators.pauses import PauseTarget
from tasker.services.operators.reruns import StartedRerun
from tasker.services.operators.steps import RetriedSteps
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import OnDuplicate, SubmissionOptions, SubmissionResult
from tasker.services.tasks.explain import Explanation
from tasker.services.tasks.lists import ListFilters
from tasker.services.tasks.logs import StepLogLine
from tasker.template.plan import Plan
from tasker.views.events import EventFilter, EventPage, PublishedEvent, RewindResult, SubscriberStatus
from tasker.views.progress import TaskProgress
from tasker.views.task_lists import PauseList, ProcessRow, RefusedMessage, TaskSummary, TransitionDetail
from tasker.views.tasks import TaskReport

View = dict[str, Any]


class TaskService(Protocol):
    """Methods of `tasker.services.tasks.read.Tasks`, documented there."""

    async def report(self, task_uuid: str) -> TaskReport: ...
    async def state(self, task_uuid: str) -> tuple[str, bool]: ...
    async def progress(self, task_uuid: str, since: datetime | None = None) -> TaskProgress: ...
    async def explain(self, task_uuid: str, step: str | None = None, *, names: int = 5) -> Explanation: ...
    async def starting_with(self, prefix: str, *, limit: int = 10) -> Sequence[str]: ...
    async def history(self, task_uuid: str) -> Sequence[TransitionDetail]: ...
    async def logs(
        self,
        task_uuid: str,
        *,
        step: str | None = None,
        attempt: int | None = None,
        level: str = "debug",
        since: datetime | None = None,
        after: str | None = None,
        limit: int = 1000,
    ) -> Sequence[StepLogLine]: ...
    async def refused(self, *, queue: str | None = None, limit: int = 50) -> Sequence[RefusedMessage]: ...
    async def cancel(self, task_uuid: str, *, reason: str = "", actor: str = "") -> str: ...
    async def list(
        self,
        *,
        namespace: str | None = None,
        template: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        tags: Sequence[str] = (),
        limit: int = 50,
        offset: int = 0,
        **more: Unpack[ListFilters],
    ) -> Sequence[TaskSummary]: ...


class StepService(Protocol):
    """Methods of `tasker.services.operators.steps.Steps`, documented there."""

    async def reset(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None: ...
    async def resolve(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None: ...
    async def retry(self, task_uuid: str, *, actor: str, reason: str) -> RetriedSteps: ...
    async def complete(
        self,
        task_uuid: str,
        step: str,
        result: Mapping[str, Any],
        *,
        actor: str,
        reason: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> None: ...


class RerunService(Protocol):
    """Methods of `tasker.services.operators.reruns.Reruns`, documented there."""

    async def start(
        self, task_uuid: str, step: str, *, actor: str, reason: str, changes: Mapping[str, Any] | None = None
    ) -> StartedRerun: ...


class ViewService(Protocol):
    """Methods of `tasker.services.tasks.search.ClientViews`, documented there."""

    async def steps(self, task_uuid: str) -> Sequence[View]: ...
    async def step(self, task_uuid: str, step_uuid: str) -> View: ...
    async def inputs(self, task_uuid: str, step_uuid: str) -> View: ...
    async def audit(self, task_uuid: str, step_uuid: str | None = None) -> Sequence[View]: ...


class PlanService(Protocol):
    """Methods of `tasker.engine.plans.PlanStore`, documented there."""

    async def registered(self, which: TemplateFilter = ..., *, limit: int = 1000) -> Sequence[View]: ...


class PauseService(Protocol):
    """Methods of `tasker.services.operators.pauses.Pauses`, documented there."""

    async def pause(self, target: PauseTarget, *, actor: str, reason: str) -> bool: ...
    async def resume(self, target: PauseTarget, *, actor: str, reason: str = "") -> int | None: ...
    async def list(self, *, log: int = 20) -> PauseList: ...


class LimitService(Protocol):
    """Methods of `tasker.services.fleet.limits.Limits`, documented there."""

    async def list(self, name: str | None = None, *, keys: int = ...) -> Sequence[LimitUse]: ...


class WorkerService(Protocol):
    """Methods of `tasker.services.fleet.overview.Workers`, documented there."""

    async def list(self, *, stopped: bool = False) -> Sequence[ProcessRow]: ...


class TemplateTextService(Protocol):
    """Methods of `tasker.services.workflows.texts.TemplateTexts`, documented there."""

    async def register(self, text: str, environment: str | None = None, *, force: bool = False) -> object: ...


class AnalyticsService(Protocol):
    """Methods of `tasker.services.fleet.analytics.Analytics`, documented there."""

    async def performance(self, *, hours: float = 1.0) -> Performance: ...
    async def bottlenecks(self, *, hours: float = 24.0, limit: int = 10, min_executions: int = 1) -> Bottlenecks: ...
    async def versions(self, namespace: str, template: str) -> Sequence[VersionHistory]: ...
    async def scaling(self, settings: ScalingSettings = ...) -> Sequence[ScalingAdvice]: ...


class QueueService(Protocol):
    """Methods of `tasker.services.fleet.brokers.Queues`, documented there."""

    async def report(self) -> BrokerReport: ...


class SubmissionService(Protocol):
    """Methods of `tasker.services.submission.registered.Submissions`, documented there."""

    async def submit(self, order: TemplateSubmission, *, on_duplicate: OnDuplicate = "refuse") -> SubmissionResult: ...
    async def submit_many(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[SubmissionResult | TaskerError]: ...


class RequestService(Protocol):
    """Methods of `tasker.services.submission.by_message.TaskRequestSender`, documented there."""

    async def request(
        self,
        target: str,
        context: Mapping[str, Any] | None = None,
        *,
        task_uuid: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> str: ...


class OverviewService(Protocol):
    """Methods of `tasker.services.fleet.overview.FleetOverview`, documented there."""

    async def overview(self) -> Overview: ...


class DoctorService(Protocol):
    """Methods of `tasker.services.fleet.doctor.Doctor`, documented there."""

    async def findings(self) -> Sequence[DoctorFinding]: ...


class OperatorLogService(Protocol):
    """Methods of `tasker.services.audit.AuditLog`, documented there."""

    async def asked(self, action: OperatorAction, status: int | None = None) -> str: ...
    async def answered(self, row: str, status: int) -> None: ...
    async def failed(self, row: str, status: int, reason: str | None) -> None: ...
    async def not_done(
        self, action: OperatorAction, row: str | None, status: int | None, reason: str | None
    ) -> None: ...
    async def list(
        self, *, actor: str | None = None, since: datetime | None = None, limit: int = 50
    ) -> Sequence[RecordedAction]: ...


class DomainEventService(Protocol):
    """Methods of `tasker.services.domain_events.DomainEventLog`, documented there."""

    async def page(
        self, which: EventFilter = ..., *, after: int = 0, limit: int = 50, newest: bool = False
    ) -> EventPage: ...
    async def withheld(self, which: EventFilter = ..., *, limit: int = 50) -> Sequence[PublishedEvent]: ...
    def follow(
        self, which: EventFilter = ..., *, after: int | None = None
    ) -> AsyncGenerator[PublishedEvent | None]: ...
    def subscribe(self, name: str, which: EventFilter = ..., *, from_now: bool = False) -> Subscription: ...
    async def subscribers(self) -> Sequence[SubscriberStatus]: ...
    async def replay(self, name: str, *, after: int | None = None, since: datetime | None = None) -> RewindResult: ...


class SensitiveService(Protocol):
    """Methods of `tasker.services.viewer.SensitiveValues`, documented there."""

    async def veil(self, task_uuid: str, permitted: Collection[str] | None) -> Redactor | None: ...


class Fleet(Protocol):
    """Services of a fleet, and methods to submit and wait, as in `App`."""

    @property
    def tasks(self) -> TaskService: ...
    @property
    def steps(self) -> StepService: ...
    @property
    def reruns(self) -> RerunService: ...
    @property
    def views(self) -> ViewService: ...
    @property
    def plans(self) -> PlanService: ...
    @property
    def schedules(self) -> ScheduleService: ...
    @property
    def pauses(self) -> PauseService: ...
    @property
    def limits(self) -> LimitService: ...
    @property
    def workers(self) -> WorkerService: ...
    @property
    def dead_letters(self) -> DeadLetterService: ...
    @property
    def replays(self) -> ReplayService: ...
    @property
    def analytics(self) -> AnalyticsService: ...
    @property
    def fleet(self) -> OverviewService: ...
    @property
    def queues(self) -> QueueService: ...
    @property
    def submissions(self) -> SubmissionService: ...
    @property
    def requests(self) -> RequestService: ...
    @property
    def doctor(self) -> DoctorService: ...
    @property
    def template_texts(self) -> TemplateTextService: ...
    @property
    def domain_events(self) -> DomainEventService: ...
    @property
    def sensitive_values(self) -> SensitiveService: ...
    @property
    def operator_log(self) -> OperatorLogService: ...
    async def pinned_plan(self, task_uuid: str) -> Plan: ...
    async def wait(self, task_uuid: str, *, timeout: float | None = None) -> TaskReport: ...
