"""Services of a program over its connections, and the brokers of commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tasker.app.configured import Configured
from tasker.app.preparation import prepare, require_shared
from tasker.clock import SystemClock, new_task_uuid
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.engine.calls import Engine
from tasker.engine.guarded_connection import GuardedConnection
from tasker.engine.plans import PlanStore
from tasker.execution.settings import WorkerSettings
from tasker.messaging.backends import load_backend
from tasker.orchestration.sweep import SweepSettings
from tasker.process.connections import Resources
from tasker.process.releases import Repairs
from tasker.resilience.breaker import GuardedCircuit
from tasker.services.approvals import Approvals
from tasker.services.database import DatabaseSizes, RetentionService
from tasker.services.domain_events import DomainEventLog
from tasker.services.fleet.analytics import Analytics
from tasker.services.fleet.broker_migration import BrokerMigration
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
from tasker.services.schedules import Schedules
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.limits import SubmissionLimits
from tasker.services.submission.submit import Submitter
from tasker.services.tasks.pages import reports_of
from tasker.services.tasks.read import Tasks
from tasker.services.tasks.search import ClientViews, TaskSearch
from tasker.services.viewer import Redaction
from tasker.settings.queues import DepthThresholds


class Services:
    """Services connected to each other. `engine` uses `connection`, which has the circuit breaker of the database."""

    def __init__(
        self,
        connection: GuardedConnection,
        engine: Engine,
        settings: WorkerSettings,
        sweeps: SweepSettings,
        configuration: Configured,
        limits: DepthThresholds,
    ) -> None:
        self.connection, self.engine, self._links = connection, engine, configuration.approvals
        self.plans = PlanStore(self.connection, configuration.retry)
        self.redaction = seen = Redaction(self.connection, self.plans, reports_of(self.engine))
        self.tasks, self.views = Tasks(self.engine, seen), ClientViews(self.engine, self.plans, seen)
        self.steps, self.pauses = Steps(self.engine, self.plans), Pauses(self.engine)
        self.limits = Limits(self.engine, seen)
        self.analytics, self.retention = Analytics(self.connection), RetentionService(self.connection)
        self.fleet, self.sizes = FleetOverview(self.connection), DatabaseSizes(self.connection)
        self.checks, self.doctor = Checks(self.engine), _doctor(self.engine, settings, configuration)
        self.workers, self.repairs = Workers(self.connection), Repairs(self.engine, self.plans, sweeps)
        self.dead_letters, self.replays = DeadLetters(self.engine, self.steps, seen), Replays(self.engine)
        self.admission = SubmissionAdmission(self.engine, SystemClock(), limits)
        self.health = ServerHealth(self.engine, self.connection, self.connection.breaker, limits)
        self.submitter = _submitter(self.engine, self.plans, settings, configuration, self.admission)
        self.metrics = ServerMetrics(self.fleet, self.connection, self.health, self.submitter.limits)
        self.reruns = Reruns(self.engine, self.plans, self.submitter)

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules."""
        return Schedules(self.engine, self.plans, self.submitter.drafts)

    @cached_property
    def search(self) -> TaskSearch:
        """Search for tasks."""
        return TaskSearch(self.connection)

    @cached_property
    def incoming_events(self) -> IncomingEvents:
        """Events for steps that wait."""
        return IncomingEvents(self.engine, self.plans)

    @cached_property
    def approvals(self) -> Approvals:
        """Approvals."""
        return Approvals(self.engine, self.plans, self.redaction, self._links)

    @cached_property
    def domain_events(self) -> DomainEventLog:
        """Log of domain events."""
        return DomainEventLog(self.connection)


def guarded_connection(resources: Resources, configuration: Configured, breaker: GuardedCircuit) -> GuardedConnection:
    """Return the connections of a program, with this breaker around the database."""
    pool = Pool(lambda: Connection(resources.url, name="tasker app"), configuration.database.pool)
    return GuardedConnection(pool, breaker)


def _doctor(engine: Engine, settings: WorkerSettings, configuration: Configured) -> Doctor:
    return Doctor(engine, settings.limits.enqueue_window, configuration.http.database_pools.max_total_connections_hint)


def _submitter(
    engine: Engine,
    plans: PlanStore,
    settings: WorkerSettings,
    configuration: Configured,
    admission: SubmissionAdmission,
) -> Submitter:
    limits = SubmissionLimits(engine, configuration.tenants, configuration.http.max_submits_per_minute)
    most, window = configuration.context_limit_bytes, settings.limits.enqueue_window
    more: dict[str, Any] = {"window": window, "context_limit_bytes": most, "admission": admission, "limits": limits}
    return Submitter(engine, plans, new_task_uuid, **more, max_depth=settings.limits.max_task_depth)


@asynccontextmanager
async def provider(
    configuration: Configured, backend: str, data_dir: Path | None = None
) -> AsyncGenerator[tuple[Resources, Connection]]:
    """Open a provider with its configured settings, and a connection to the database.

    Raises `UsageError` for a provider that lives inside one process, and the errors of `prepare` and of opening.
    """
    settings = configuration.backend_settings.get(backend)
    require_shared(load_backend(backend, settings or {}), "nothing of it can be reached from here")
    resources = prepare(
        configuration.database_url,
        backend=backend,
        data_dir=data_dir,
        names=configuration.queue_names,
        backend_settings=settings,
        database=configuration.database,
    )
    connection = Connection(resources.url, name="tasker broker")
    try:
        await resources.messaging.open()
        yield resources, connection
    finally:
        await connection.close()
        await resources.messaging.close()
        resources.close()


@asynccontextmanager
async def migration(
    configuration: Configured, to: str, data_dir: Path | None = None
) -> AsyncGenerator[BrokerMigration]:
    """Open a migration to a provider. Raises the errors of `provider`."""
    async with provider(configuration, to, data_dir) as (resources, connection):
        yield BrokerMigration(Engine(connection, resources.messaging))
