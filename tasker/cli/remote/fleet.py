"""Services that commands use, implemented by `App` on a database and by `HttpFleet` through a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack

from tasker.engine.plans import TemplateFilter
from tasker.errors import TaskerError
from tasker.services.audit import OperatorAction
from tasker.services.event_subscriptions import Subscription
from tasker.services.submission.registered import TemplateSubmission
from tasker.services.submission.submit import OnDuplicate, SubmissionOptions, SubmissionResult
from tasker.services.tasks.lists import ListFilters
from tasker.template.plan import Plan
from tasker.views.children import TaskFamily
from tasker.views.deployments import Deployment
from tasker.views.events import EventFilter, EventPage, PublishedEvent, RewindResult, SubscriberStatus
from tasker.views.explanation import Explanation
from tasker.views.fleet import RecordedAction
from tasker.views.progress import TaskProgress
from tasker.views.steps import Attempt, RetriedSteps, StartedRerun, Step, StepInputs, StepLogLine
from tasker.views.task_lists import RefusedMessage, TaskSummary, TransitionDetail
from tasker.views.tasks import TaskReport
from tasker.views.templates import Registration, TemplateDetail

if TYPE_CHECKING:
    from tasker.cli.remote.approvals import HttpApprovals
    from tasker.cli.remote.events import HttpIncomingEvents
    from tasker.cli.remote.http_fleet import HttpDeadLetters, HttpDoctor, HttpPauses, HttpReplays, HttpSchedules
    from tasker.operations.analytics import RemoteAnalytics
    from tasker.operations.fleet import RemoteLimits, RemoteOverview, RemoteQueues, RemoteWorkers
    from tasker.services.approvals import Approvals
    from tasker.services.fleet.analytics import Analytics
    from tasker.services.fleet.brokers import Queues
    from tasker.services.fleet.doctor import Doctor
    from tasker.services.fleet.limits import Limits
    from tasker.services.fleet.overview import FleetOverview, Workers
    from tasker.services.incoming_events import IncomingEvents
    from tasker.services.operators.dead_letters import DeadLetters
    from tasker.services.operators.pauses import Pauses
    from tasker.services.operators.replays import Replays
    from tasker.services.schedules import Schedules

View = dict[str, Any]
T = TypeVar("T")


class TaskService(Protocol):
    """Methods of `tasker.services.tasks.read.Tasks`, documented there."""

    async def report(self, task_uuid: str) -> TaskReport: ...
    async def state(self, task_uuid: str) -> tuple[str, bool]: ...
    async def progress(self, task_uuid: str, since: datetime | None = None) -> TaskProgress: ...
    async def explain(self, task_uuid: str, step: str | None = None, *, names: int = 5) -> Explanation: ...
    async def starting_with(self, prefix: str, *, limit: int = 10) -> Sequence[str]: ...
    async def children(
        self, task_uuid: str, *, step: str | None = None, after: str | None = None, limit: int = 50
    ) -> TaskFamily: ...
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
    async def cancel(
        self, task_uuid: str, *, reason: str = "", actor: str | None = None, compensate: bool = False
    ) -> str: ...
    async def compensate(self, task_uuid: str, *, reason: str = "", actor: str | None = None) -> object: ...
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

    async def steps(self, task_uuid: str) -> Sequence[Step]: ...
    async def step(self, task_uuid: str, step_uuid: str) -> Step: ...
    async def inputs(self, task_uuid: str, step_uuid: str) -> StepInputs: ...
    async def audit(self, task_uuid: str, step_uuid: str | None = None) -> Sequence[Attempt]: ...


class PlanService(Protocol):
    """Methods of `tasker.engine.plans.PlanStore`, documented there."""

    async def registered(self, which: TemplateFilter = ..., *, limit: int = 1000) -> Sequence[View]: ...


class TemplateTextService(Protocol):
    """Methods of `tasker.services.workflows.texts.TemplateTexts`, documented there."""

    async def register(self, text: str, environment: str | None = None, *, force: bool = False) -> Registration: ...
    async def detail(self, namespace: str, name: str, version: str) -> TemplateDetail: ...


class DeploymentService(Protocol):
    """Methods of `tasker.services.workflows.deployments.Deployments`, documented there."""

    async def plan(self, text: str, environment: str | None = None, *, force: bool = False) -> Deployment: ...
    async def apply(
        self, text: str, token: str, environment: str | None = None, *, force: bool = False
    ) -> Registration: ...


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
        self, which: EventFilter = ..., *, after: int | None = None, limit: int = 50, newest: bool = False
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

    async def redacted(self, task_uuid: str, answer: T) -> T: ...


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
    def schedules(self) -> Schedules | HttpSchedules: ...
    @property
    def pauses(self) -> Pauses | HttpPauses: ...
    @property
    def limits(self) -> Limits | RemoteLimits: ...
    @property
    def workers(self) -> Workers | RemoteWorkers: ...
    @property
    def dead_letters(self) -> DeadLetters | HttpDeadLetters: ...
    @property
    def replays(self) -> Replays | HttpReplays: ...
    @property
    def analytics(self) -> Analytics | RemoteAnalytics: ...
    @property
    def fleet(self) -> FleetOverview | RemoteOverview: ...
    @property
    def queues(self) -> Queues | RemoteQueues: ...
    @property
    def submissions(self) -> SubmissionService: ...
    @property
    def requests(self) -> RequestService: ...
    @property
    def doctor(self) -> Doctor | HttpDoctor: ...
    @property
    def template_texts(self) -> TemplateTextService: ...
    @property
    def deployments(self) -> DeploymentService: ...
    @property
    def domain_events(self) -> DomainEventService: ...
    @property
    def incoming_events(self) -> IncomingEvents | HttpIncomingEvents: ...
    @property
    def approvals(self) -> Approvals | HttpApprovals: ...
    @property
    def sensitive_values(self) -> SensitiveService: ...
    @property
    def operator_log(self) -> OperatorLogService: ...
    async def pinned_plan(self, task_uuid: str) -> Plan: ...
    async def wait(self, task_uuid: str, *, timeout: float | None = None) -> TaskReport: ...
