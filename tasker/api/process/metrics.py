"""What `/metrics` of a worker or an orchestrator tells: this process, and nothing of the fleet."""

from __future__ import annotations

from collections.abc import Iterator

from tasker.api.process.observed import Observed
from tasker.lifecycle.deployment import HealthStatus
from tasker.plugins.process import PluginState
from tasker.services.server.exposition import Catalogue, Sample
from tasker.services.server.metrics import CATALOGUE as OF_SERVERS
from tasker.version import __version__

ACCESS = ("tasker_auth_", "tasker_permission_")
STATES = {HealthStatus.HEALTHY: 0, HealthStatus.DEGRADED: 1}
CATALOGUE: Catalogue = {
    "tasker_info": ("gauge", "The release of this process; always 1."),
    "tasker_process_up": ("gauge", "1 while it works, 0 while it starts or stops."),
    "tasker_process_health": ("gauge", "How a part of it does: 0 well, 1 degraded, 2 worse."),
    "tasker_process_start_time_seconds": ("gauge", "When it started, in seconds since 1970."),
    "tasker_service_crashes_total": ("counter", "Services of the process that were started again after an error."),
    "tasker_plugin_calls_total": ("counter", "Events that a plugin has heard."),
    "tasker_plugin_failures_total": ("counter", "Calls in which a plugin raised."),
    "tasker_plugin_dropped_total": ("counter", "Events that a plugin was too slow to hear."),
    "tasker_plugin_waiting": ("gauge", "Events that wait until a plugin hears them."),
    "tasker_plugin_off": ("gauge", "1 for a plugin that this process has switched off."),
    "tasker_steps_slots": ("gauge", "Steps that this worker can run at the same time."),
    "tasker_steps_active_executions": ("gauge", "Steps that this worker has in hand."),
    "tasker_steps_given_back_total": ("counter", "Steps that this worker gave back without an attempt."),
    **{name: described for name, described in OF_SERVERS.items() if name.startswith(ACCESS)},
}


def samples(observed: Observed) -> Iterator[Sample]:
    """The numbers of now."""
    yield Sample("tasker_info", 1, {"version": __version__, "kind": observed.kind})
    yield Sample("tasker_process_up", int(observed.running))
    yield Sample("tasker_process_start_time_seconds", observed.started_at.timestamp())
    for area, health in observed.areas().items():
        yield Sample("tasker_process_health", STATES.get(health.status, 2), {"part": area})
    for service, times in observed.process.supervisor.crashes.items():
        yield Sample("tasker_service_crashes_total", times, {"service": service})
    for state in observed.process.plugins.states():
        yield from _of_plugin(state)
    if observed.kind == "worker":
        load = observed.load()
        yield Sample("tasker_steps_slots", load.slots)
        yield Sample("tasker_steps_active_executions", load.busy)
        yield Sample("tasker_steps_given_back_total", load.given_back)


def _of_plugin(state: PluginState) -> Iterator[Sample]:
    named = {"plugin": state.name}
    yield Sample("tasker_plugin_calls_total", state.told, named)
    yield Sample("tasker_plugin_dropped_total", state.dropped, named)
    yield Sample("tasker_plugin_waiting", state.waiting, named)
    yield Sample("tasker_plugin_off", bool(state.off), named)
    for hook, count in state.failures.items():
        yield Sample("tasker_plugin_failures_total", count, {**named, "hook": hook})
