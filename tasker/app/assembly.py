"""Construction of the objects that the parts of one process share."""

from __future__ import annotations

import random
from functools import partial

from tasker.clock import SystemClock
from tasker.engine.calls import OnFinished
from tasker.engine.named_limits import LimitDeclarations
from tasker.engine.write_listeners import WriteListeners
from tasker.execution.settings import WorkerSettings
from tasker.messaging.listening_modes import EventSettings
from tasker.messaging.service import MessagingService
from tasker.orchestration.pending_work import PendingWork
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.found import PluginChoice
from tasker.plugins.hook_arguments import TaskFinished
from tasker.plugins.host import PluginHost, plugins_of
from tasker.process.connections import Engines
from tasker.process.context import ProcessContext
from tasker.process.event_system import EventSystem
from tasker.resilience.breakers import BreakerPolicies, Breakers

BREAKER_CHANGED = "tasker_breaker_changed"


def listeners_of(plugins: PluginHost) -> WriteListeners:
    """Return the listeners of plugins that are notified of the engine's writes."""
    hooks = ("tasker_transitions", "tasker_write_committed", "tasker_tasks_submitted", "tasker_tasks_closed")
    return WriteListeners(*map(plugins.listener, hooks))


def breakers_of(policies: BreakerPolicies, choice: PluginChoice) -> Breakers:
    """Return the breakers of a process with these plugins; the plugins are loaded at the first state change."""
    return Breakers(SystemClock(), policies, lambda changed: plugins_of(choice).notify(BREAKER_CHANGED, changed))


def end_listener_of(plugins: PluginHost, then: OnFinished) -> OnFinished:
    """Return a callback that notifies plugins of an ended task and then calls `then`."""
    listener = plugins.listener("tasker_task_finished")
    if listener is None:
        return then

    def finished(task_uuid: str, state: str) -> None:
        listener(TaskFinished(task_uuid, state))
        then(task_uuid, state)

    return finished


def process_context(
    url: str,
    messaging: MessagingService,
    settings: WorkerSettings | None,
    sweeps: SweepSettings | None,
    breakers: Breakers | None,
    events: EventSettings | None = None,
    waiter: str | None = None,
    plugins: PluginHost | None = None,
) -> ProcessContext:
    """Return the context of a process. Omitted arguments have the values of an unconfigured process, `events` a
    worker's.

    `breakers` already contain their listeners (`breakers_of`). `waiter` is the id of the program in this process that
    waits for tasks. Without `plugins`, those that are enabled by default are used.
    """
    settings, clock = settings or WorkerSettings(), SystemClock()
    plugins = plugins or plugins_of(PluginChoice())
    engines = Engines(url, messaging, settings.rules, waiter, listeners_of(plugins))
    return ProcessContext(
        url,
        messaging,
        settings,
        sweeps or SweepSettings(),
        clock,
        breakers or Breakers(clock, on_change=partial(plugins.notify, BREAKER_CHANGED)),
        engines,
        engines.upkeep,
        EventSystem(
            events or settings.events, messaging.capabilities, clock, random, plugins.listener("tasker_queue_polled")
        ),
        PendingWork(clock),
        LimitDeclarations(engines.upkeep.connection, settings.named_limits),
        plugins,
    )
