"""Objects shared by the components of one process."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass
from tasker.execution.settings import WorkerSettings
from tasker.messaging.service import MessagingService
from tasker.orchestration.schedule import PendingWork
from tasker.orchestration.sweeping.sweep import SweepSettings
from tasker.plugins.process import PluginHost
from tasker.process.connections.engines import Engines
from tasker.process.listening.event_system import EventSystem
from tasker.process.system import SystemClock
from tasker.resilience.registry import Breakers
from tasker.services.engine.calls import Engine


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
    plugins: PluginHost
