"""What the objects of one process share: where they work, by which settings, clock and breakers, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tasker.execution.settings import WorkerSettings
from tasker.lifecycle.deployment import EventSettings
from tasker.messaging.service import MessagingService
from tasker.orchestration.schedule import Schedule
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins import Plugins, installed_plugins
from tasker.process.engines import Engines
from tasker.process.listening.event_system import EventSystem
from tasker.process.system import SystemClock
from tasker.resilience.registry import Breakers
from tasker.services.engine.calls import Engine


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """Shared by all objects of a process. `url` is its database, `events` says when it looks for work.

    `engines` makes an engine for each purpose; `engine` is the one for what is neither a claim nor a result. `plugins`
    hear of what happens.
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
    schedule: Schedule
    plugins: Plugins


def process_context(
    url: str,
    messaging: MessagingService,
    settings: WorkerSettings | None,
    sweeps: SweepSettings | None,
    breakers: Breakers | None,
    events: EventSettings | None = None,
    waiter: str | None = None,
) -> ProcessContext:
    """The context of a process; what is not given is as without a configuration, `events` as for a worker.

    `waiter` is the program in this process that waits for tasks.
    """
    settings, clock = settings or WorkerSettings(), SystemClock()
    engines, plugins = Engines(url, messaging, settings.rules, waiter), installed_plugins()
    breakers = breakers or Breakers(clock)
    breakers.on_change = plugins.listener("tasker_breaker_changed")
    return ProcessContext(
        url,
        messaging,
        settings,
        sweeps or SweepSettings(),
        clock,
        breakers,
        engines,
        engines.upkeep,
        EventSystem(events or settings.events, messaging.capabilities, clock, random),
        Schedule(clock),
        plugins,
    )
