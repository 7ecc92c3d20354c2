"""Objects shared by the components of one process."""

from __future__ import annotations

from tasker.clock import SystemClock
from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine
from tasker.engine.named_limits import LimitDeclarations
from tasker.execution.settings import WorkerSettings
from tasker.messaging.service import MessagingService
from tasker.orchestration.pending_work import PendingWork
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.host import PluginHost
from tasker.process.connections import Engines
from tasker.process.event_system import EventSystem
from tasker.resilience.breakers import Breakers


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """Shared objects of a process. `url` is its database; `events` decides when it polls.

    `engines` makes an engine for each purpose; `engine` is the one for everything but claims and results. `plugins` are
    notified of events.
    """

    url: str
    messaging: MessagingService
    settings: WorkerSettings
    sweeps: SweepSettings
    clock: SystemClock
    breakers: Breakers
    engines: Engines
    engine: Engine
    events: EventSystem
    schedule: PendingWork
    limits: LimitDeclarations
    plugins: PluginHost
