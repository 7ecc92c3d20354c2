"""What programs ask of the engine, over connections of their own that fail at once while the database is down."""

from __future__ import annotations

from tasker.app.bootstrap import Resources
from tasker.app.configured import Configured
from tasker.app.repairing import Repairs
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.execution.settings import WorkerSettings
from tasker.lifecycle.pressure import DepthLimits
from tasker.orchestration.sweep import SweepSettings
from tasker.process.system import SystemClock, new_task_uuid
from tasker.resilience.guard import Guard
from tasker.services.checks import Checks
from tasker.services.client_views import ClientViews
from tasker.services.engine.calls import Engine
from tasker.services.engine.guarded_connection import GuardedConnection
from tasker.services.engine.plans import PlanStore
from tasker.services.pauses import Pauses
from tasker.services.pressure import Admission
from tasker.services.steps import Steps
from tasker.services.submission import Submitter
from tasker.services.tasks import Tasks
from tasker.services.workers import Workers


class Services:
    """The use cases, joined. `breaker` is the one around the database."""

    def __init__(
        self,
        resources: Resources,
        settings: WorkerSettings,
        sweeps: SweepSettings,
        configuration: Configured,
        limits: DepthLimits,
        breaker: Guard,
    ) -> None:
        pool = Pool(lambda: Connection(resources.url, name="tasker app"), configuration.database.pool)
        self.connection = GuardedConnection(pool, breaker)
        self.engine = Engine(self.connection, resources.messaging, settings.rules)
        self.tasks, self.views = Tasks(self.engine), ClientViews(self.engine)
        self.plans = PlanStore(self.connection, configuration.retry)
        self.steps, self.pauses, self.checks = Steps(self.engine, self.plans), Pauses(self.engine), Checks(self.engine)
        self.workers, self.repairs = Workers(self.connection), Repairs(self.engine, self.plans, sweeps)
        self.admission = Admission(self.engine, SystemClock(), limits)
        self.submitter = Submitter(
            self.engine,
            self.plans,
            new_task_uuid,
            window=settings.window,
            context_limit_bytes=configuration.context_limit_bytes,
            admission=self.admission,
        )
