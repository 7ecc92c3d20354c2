"""Services of programs, over their own connections, which fail at once while the database is down."""

from __future__ import annotations

from functools import cached_property

from tasker.app.configured import Configured
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.execution.settings import WorkerSettings
from tasker.lifecycle.pressure import DepthLimits
from tasker.orchestration.sweeping.sweep import SweepSettings
from tasker.process.connections.resources import Resources
from tasker.process.repairing import Repairs
from tasker.process.system import SystemClock, new_task_uuid
from tasker.resilience.guard import GuardedCircuit
from tasker.services.checks import Checks
from tasker.services.client_views import ClientViews
from tasker.services.database.retention import RetentionService
from tasker.services.database.sizes import DatabaseSizes
from tasker.services.dead_letters.entries import DeadLetters
from tasker.services.dead_letters.replays import Replays
from tasker.services.domain_events.log import DomainEventLog
from tasker.services.engine.calls import Engine
from tasker.services.engine.guarded_connection import GuardedConnection
from tasker.services.engine.plans import PlanStore
from tasker.services.fleet.analytics import Analytics
from tasker.services.fleet.doctor import Doctor
from tasker.services.fleet.overview import FleetOverview
from tasker.services.fleet.workers import Workers
from tasker.services.operators.reruns import Reruns
from tasker.services.operators.steps import Steps
from tasker.services.pauses import Pauses
from tasker.services.server.bulk_submission import BulkSubmitter
from tasker.services.server.health import ServerHealth
from tasker.services.server.metrics import ServerMetrics
from tasker.services.submitting.pressure import SubmissionAdmission
from tasker.services.submitting.submission import Submitter
from tasker.services.task_search import TaskSearch
from tasker.services.tasks import Tasks


class Services:
    """Services connected to each other. `engine` uses `connection`, which has the circuit breaker of the database."""

    def __init__(
        self,
        connection: GuardedConnection,
        engine: Engine,
        settings: WorkerSettings,
        sweeps: SweepSettings,
        configuration: Configured,
        limits: DepthLimits,
    ) -> None:
        self.connection, self.engine = connection, engine
        self.tasks, self.views = Tasks(self.engine), ClientViews(self.engine)
        self.plans = PlanStore(self.connection, configuration.retry)
        self.steps, self.pauses = Steps(self.engine, self.plans), Pauses(self.engine)
        self.analytics, self.retention = Analytics(self.connection), RetentionService(self.connection)
        self.fleet, self.sizes = FleetOverview(self.connection), DatabaseSizes(self.connection)
        self.checks, self.doctor = Checks(self.engine), _doctor(self.engine, settings, configuration)
        self.workers, self.repairs = Workers(self.connection), Repairs(self.engine, self.plans, sweeps)
        self.dead_letters, self.replays = DeadLetters(self.engine, self.steps), Replays(self.engine)
        self.admission = admission = SubmissionAdmission(self.engine, SystemClock(), limits)
        self.health = ServerHealth(self.engine, self.connection, self.connection.breaker, limits)
        self.metrics = ServerMetrics(self.fleet, self.connection, self.health)
        self.submitter = submitter = _submitter(self.engine, self.plans, settings, configuration, admission)
        self.bulk, self.reruns = BulkSubmitter(submitter, self.plans), Reruns(self.engine, self.plans, submitter)

    @cached_property
    def search(self) -> TaskSearch:
        """Search for tasks."""
        return TaskSearch(self.connection)

    @cached_property
    def domain_events(self) -> DomainEventLog:
        """Log of domain events."""
        return DomainEventLog(self.connection)


def guarded_connection(resources: Resources, configuration: Configured, breaker: GuardedCircuit) -> GuardedConnection:
    """Return the connections of a program, with this breaker around the database."""
    pool = Pool(lambda: Connection(resources.url, name="tasker app"), configuration.database.pool)
    return GuardedConnection(pool, breaker)


def _doctor(engine: Engine, settings: WorkerSettings, configuration: Configured) -> Doctor:
    return Doctor(engine, settings.window, configuration.http.pool.total_hint)


def _submitter(
    engine: Engine,
    plans: PlanStore,
    settings: WorkerSettings,
    configuration: Configured,
    admission: SubmissionAdmission,
) -> Submitter:
    limit, window = configuration.context_limit_bytes, settings.window
    return Submitter(engine, plans, new_task_uuid, window=window, context_limit_bytes=limit, admission=admission)
