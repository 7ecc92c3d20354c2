"""Parts of an app: created at its start, closed at its stop, and the services that need a started app."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict

from tasker.app.assembly import breakers_of, end_listener_of, listeners_of
from tasker.app.configured import Configured, configured_program
from tasker.app.preparation import prepare
from tasker.app.program_waiters import program_waiters
from tasker.app.services import Services, guarded_connection
from tasker.app.started import already_started, forget, is_started, opened_whole, requires_start, service
from tasker.clock import new_task_uuid, new_uuid
from tasker.engine.calls import Engine
from tasker.engine.guarded_connection import GuardedConnection
from tasker.engine.plans import PlanStore
from tasker.execution.settings import WorkerSettings, with_resources
from tasker.messaging.service import MessagingService
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.contributions import rules_of
from tasker.plugins.host import plugins_of
from tasker.process.connections import Resources
from tasker.process.heartbeat import end_dead_leases
from tasker.process.releases import Repairs
from tasker.process.stopping import STOP_GRACE_SECONDS, to_its_end
from tasker.resilience.breakers import Breakers
from tasker.services.approvals import Approvals
from tasker.services.audit import AuditLog
from tasker.services.database import DatabaseSizes, RetentionService
from tasker.services.domain_events import DomainEventLog
from tasker.services.fleet.analytics import Analytics
from tasker.services.fleet.brokers import Queues
from tasker.services.fleet.doctor import Checks, Doctor
from tasker.services.fleet.health import ServerHealth
from tasker.services.fleet.limits import Limits
from tasker.services.fleet.metrics import ServerMetrics
from tasker.services.fleet.overview import FleetOverview, Workers
from tasker.services.incoming_events import IncomingEvents
from tasker.services.operators.dead_letters import DeadLetters
from tasker.services.operators.pauses import Pauses
from tasker.services.operators.replays import Replays
from tasker.services.operators.reruns import Reruns
from tasker.services.operators.steps import Steps
from tasker.services.page_sessions import PageSessions
from tasker.services.schedules import Schedules
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.by_message import TaskRequestSender
from tasker.services.submission.in_transaction import AfterCommit
from tasker.services.submission.registered import Submissions
from tasker.services.submission.submit import OnDuplicate, SubmissionOptions, Submitter
from tasker.services.tasks.history import TaskEvents
from tasker.services.tasks.lists import SavedViews
from tasker.services.tasks.pages import TaskPages
from tasker.services.tasks.read import Tasks
from tasker.services.tasks.search import ClientViews, TaskSearch
from tasker.services.tasks.waiting import Waiters
from tasker.services.viewer import SensitiveValues
from tasker.services.workflows.deployments import Deployments
from tasker.services.workflows.texts import TemplateTexts
from tasker.settings.addresses import BackendSettings
from tasker.settings.queues import DepthThresholds

if TYPE_CHECKING:
    from tasker.execution.attempt.runner import AttemptRunner
    from tasker.handlers.registry.registry import HandlerRegistry
    from tasker.process.runtime import Runtime
    from tasker.services.workflows.target_plans import TargetPlans


class PlanOptions(TypedDict, total=False):
    """Selection of a target's workflow: its name if a file has several, and the environment of the overrides."""

    template: str | None
    environment: str | None


class SubmitOptions(PlanOptions, SubmissionOptions, total=False):
    """Options of a submission in a caller's transaction, in addition to target and context."""


class RunOptions(SubmitOptions, total=False):
    """Options of `App.run`, in addition to target, context and `timeout`."""

    on_duplicate: OnDuplicate


def listed(handlers: Sequence[str | Path] | str | Path) -> Sequence[str | Path]:
    """Return the sources of handlers as a list; a single source may be given alone."""
    return [handlers] if isinstance(handlers, (str, Path)) else list(handlers)


class AppLifecycle:
    """Start, stop and services of an `App`. Parameters as in `App`."""

    opened_by = "async with tasker.App() as app:"

    tasks = service[Tasks]()
    search = service[TaskSearch]()
    steps = service[Steps]()
    pauses = service[Pauses]()
    limits = service[Limits]()
    dead_letters = service[DeadLetters]()
    replays = service[Replays]()
    reruns = service[Reruns]()
    schedules = service[Schedules]()
    plans = service[PlanStore]()
    workers = service[Workers]()
    views = service[ClientViews]()
    checks = service[Checks]()
    fleet = service[FleetOverview]()
    analytics = service[Analytics]()
    retention = service[RetentionService]()
    sizes = service[DatabaseSizes]()
    doctor = service[Doctor]()
    repairs = service[Repairs]()
    admission = service[SubmissionAdmission]()
    health = service[ServerHealth]()
    metrics = service[ServerMetrics]()
    events = requires_start[TaskEvents]()
    domain_events = service[DomainEventLog]()
    incoming_events = service[IncomingEvents]()
    approvals = service[Approvals]()
    template_texts = requires_start[TemplateTexts]()
    deployments = requires_start[Deployments]()
    queues = requires_start[Queues]()
    submissions = requires_start[Submissions]()
    requests = requires_start[TaskRequestSender]()
    operator_log = requires_start[AuditLog]()
    saved_views = requires_start[SavedViews]()
    page_sessions = requires_start[PageSessions]()
    sensitive_values = requires_start[SensitiveValues]()
    task_pages = requires_start[TaskPages]()
    registry = requires_start["HandlerRegistry"]()
    _changing = requires_start[asyncio.Lock]()
    _loop = requires_start[asyncio.AbstractEventLoop]()
    _resources = requires_start[Resources]()
    _services = requires_start[Services]()
    _connection = requires_start[GuardedConnection]()
    _engine = requires_start[Engine]()
    _submitter = requires_start[Submitter]()
    _targets = requires_start["TargetPlans"]()
    _waiters = requires_start[Waiters]()
    _after_commit = requires_start[AfterCommit]()
    _runtime: Runtime | None = None

    def __init__(
        self,
        database_url: str | None = None,
        *,
        handlers: Sequence[str | Path] | str | Path = (),
        environment: str | None = None,
        backend: str | None = None,
        data_dir: str | Path | None = None,
        work: bool = True,
        registry: HandlerRegistry | None = None,
        settings: WorkerSettings | None = None,
        sweeps: SweepSettings | None = None,
        configuration: Configured | None = None,
        depth_limits: DepthThresholds | None = None,
        backend_settings: BackendSettings | None = None,
        runner: Callable[..., AttemptRunner] | None = None,
        max_connections: int | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        self._configuration = configuration = configured_program(database_url, data_dir, configuration, max_connections)
        self._data_dir, self._registry, self._runner, self._work = data_dir, registry, runner, work
        self._backend, self._depth_limits = backend or configuration.backend, depth_limits or configuration.depth_limits
        self._backend_settings = {**configuration.backend_settings.get(self._backend, {}), **(backend_settings or {})}
        self._environment, self._sweeps = environment or configuration.environment, sweeps or configuration.sweeps
        self._sources, self._settings = listed(handlers), with_resources(settings or configuration.worker, resources)

    @cached_property
    def breakers(self) -> Breakers:
        """Circuit breakers of this program."""
        return breakers_of(self._configuration.breakers, self._configuration.plugins)

    async def __aenter__(self) -> Self:
        """Connect, upgrade the schema and start working."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; running steps get the default grace of `stop`."""
        await self.stop()

    async def start(self) -> None:
        """Connect, upgrade the schema and start working.

        Raises `UsageError` if the app is already started. After an error, nothing stays open.
        """
        if is_started(self):
            raise already_started(type(self).__name__)
        self._changing, self._loop = asyncio.Lock(), asyncio.get_running_loop()
        async with self._changing:
            self._opened = await opened_whole(self._open, lambda: forget(self))

    async def _open(self, opened: AsyncExitStack) -> None:
        """Create the parts and register how each is closed with `opened`, which closes them in reverse order."""
        self._resources = await self._prepared()
        opened.callback(self._resources.close)
        opened.push_async_callback(self._resources.messaging.close)
        await self._resources.open()
        self._plugins = plugins_of(self._configuration.plugins)
        self._services = made = self._joined()
        opened.push_async_callback(made.connection.close)
        self._connection, self._engine = made.connection, made.engine
        self._submitter = made.submitter
        self._rules = rules_of(self._plugins)
        self._load()
        self.template_texts, self.queues = TemplateTexts(made.plans, made.workers, self._rules), Queues(made.engine)
        self.deployments = Deployments(self.template_texts, made.plans, made.workers, made.connection)
        self.requests = TaskRequestSender(self.messaging, new_task_uuid, self._configuration.context_limit_bytes)
        self.operator_log, self.saved_views = AuditLog(made.connection), SavedViews(made.connection)
        self.page_sessions = PageSessions(made.connection)
        self.task_pages = TaskPages(made.connection, made.redaction)
        self.sensitive_values = SensitiveValues(made.redaction)
        self._after_commit = AfterCommit(made.connection, self._resources.messaging, self._wake)
        opened.push_async_callback(self._after_commit.close)
        waiter = new_uuid()
        self._runtime = self._worker(waiter) if self._work else None
        url, events = self._resources.url, self._settings.events
        self._waiters = program_waiters(waiter, made.connection, url, events, self._runtime)
        opened.push_async_callback(self._waiters.close)
        self.submissions = Submissions(made.submitter, made.plans, self._waiters, self._wake)
        self.events = TaskEvents(made.connection, self._waiters.wait)
        opened.push_async_callback(self.events.close)
        opened.push_async_callback(self._plugins.settle)
        if self._runtime is not None:
            if self._resources.server is not None:
                await end_dead_leases(made.engine)
            opened.push_async_callback(self._runtime.stop, 0.0)
            await self._runtime.limits.declare()
            await self._runtime.start()

    def _load(self) -> None:
        """Load handlers and targets at start: the first submission is fast, and errors in handlers appear early."""
        self.registry = self._loaded()
        self._targets = self._targeted()

    def _loaded(self) -> HandlerRegistry:
        from tasker.services.workflows.handlers import load_handlers

        return self._registry or load_handlers(self._sources, self._configuration.importable)

    def _targeted(self) -> TargetPlans:
        from tasker.services.workflows.target_plans import TargetPlans

        return TargetPlans(self.registry, self.plans, self._rules)

    def _joined(self) -> Services:
        connection = guarded_connection(self._resources, self._configuration, self.breakers.database)
        engine = Engine(
            connection,
            self._resources.messaging,
            self._settings.rules,
            on_finished=end_listener_of(self._plugins, self._ended),
            listeners=listeners_of(self._plugins),
        )
        return Services(connection, engine, self._settings, self._sweeps, self._configuration, self._depth_limits)

    def _worker(self, waiter: str) -> Runtime:
        from tasker.app.worker_assembly import worker_process
        from tasker.execution.attempt.runner import AttemptRunner

        self._load_installed()
        return worker_process(
            self._resources.url,
            self._resources.messaging,
            self.registry,
            [],
            settings=self._settings,
            sweeps=self._sweeps,
            breakers=self.breakers,
            runner=self._runner or AttemptRunner,
            on_finished=self._ended,
            on_elsewhere=lambda tasks: self._waiters.on_notification(tasks),
            waiter=waiter,
            plugins=self._plugins,
        )

    def _load_installed(self) -> None:
        self.registry.load_installed()

    def prepare(self) -> Resources:
        """Prepare the database with its schema, and the messaging provider. Blocks."""
        return prepare(
            self._configuration.database_url,
            backend=self._backend,
            data_dir=Path(self._data_dir) if self._data_dir else None,
            names=self._configuration.queue_names,
            backend_settings=self._backend_settings,
            breakers=self.breakers,
            database=self._configuration.database,
        )

    async def _prepared(self) -> Resources:
        return self.prepare()

    async def stop(self, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Stop working (see `stop_working`) and close the database. May be called twice."""
        if not is_started(self):
            return
        async with self._changing:  # a second call waits for the first one, or for a start
            if is_started(self):
                try:
                    await self.stop_working(grace_seconds)
                finally:
                    await to_its_end(self._opened.aclose())

    async def stop_working(self, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Wait up to `grace_seconds` for running steps, then release them. Tasks can still be read."""
        if self._runtime is not None:
            await self._runtime.stop(grace_seconds)

    @property
    def database_url(self) -> str:
        """URL of the database in use."""
        return self._resources.url

    @property
    def messaging(self) -> MessagingService:
        """Messaging service in use."""
        return self._resources.messaging

    @property
    def runtime(self) -> Runtime | None:
        """Worker of this app; None with `work=False`."""
        return self._runtime

    def _ended(self, task_uuid: str, state: str) -> None:
        """Handle the end of a task by a write of this process.

        The write proves that the database answers, so the breaker allows a trial at once.
        """
        self._connection.breaker.encouraged()
        self._waiters.ended(task_uuid)

    def _wake(self) -> None:
        if self._runtime is not None:
            self._runtime.wake()
