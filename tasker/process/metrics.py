"""Content of `/metrics` of a worker or an orchestrator: metrics of this process only, not of the fleet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tasker.execution.step_metrics import LABELS, MEANINGS
from tasker.messaging.listening_modes import DeploymentMode, HealthStatus
from tasker.metrics import Metric
from tasker.orchestration.dead_letters import StalenessSearch
from tasker.plugins.host import PluginState
from tasker.process.event_system import EventSystem
from tasker.process.metric_aliases import CATALOGUE as ALIASES
from tasker.process.metric_aliases import of_breakers, of_load, of_polls
from tasker.process.observed import Buffer, ProcessSnapshot
from tasker.services.fleet.metric_catalogue import CATALOGUE as OF_SERVERS
from tasker.services.fleet.metric_catalogue import OF_BREAKERS, Catalogue, Described, Sample
from tasker.services.fleet.metrics import breaker_samples
from tasker.version import __version__

OUTCOMES = ("fired", "queued", "skipped", "missed", "refused")
"""Outcomes of the fire times of schedules."""
ACCESS = ("tasker_auth_", "tasker_permission_")
MODES = {
    DeploymentMode.HYBRID: "hybrid",
    DeploymentMode.EVENT_DRIVEN_ONLY: "event_driven",
    DeploymentMode.POLLING_ONLY: "polling",
}
STATES = {HealthStatus.HEALTHY: 0, HealthStatus.DEGRADED: 1}
PROCESS_CATALOGUE: Catalogue = {
    "tasker_info": Described("gauge", "The release of this process; always 1.", ("version", "kind")),
    "tasker_process_up": Described("gauge", "1 when ready, 0 during startup and shutdown."),
    "tasker_process_health": Described(
        "gauge", "Health of a component: 0 healthy, 1 degraded, 2 unhealthy.", ("part",)
    ),
    "tasker_process_start_time_seconds": Described("gauge", "Start time, in seconds since 1970."),
    "tasker_service_crashes_total": Described(
        "counter", "Services of the process restarted after an error.", ("service",)
    ),
    "tasker_plugin_calls_total": Described("counter", "Events delivered to a plugin.", ("plugin",)),
    "tasker_plugin_failures_total": Described("counter", "Plugin calls that raised an exception.", ("plugin", "hook")),
    "tasker_plugin_dropped_total": Described("counter", "Events dropped because a plugin was too slow.", ("plugin",)),
    "tasker_plugin_waiting": Described("gauge", "Events waiting for a plugin.", ("plugin",)),
    "tasker_plugin_off": Described("gauge", "1 for a plugin disabled by this process.", ("plugin",)),
    "tasker_steps_slots": Described("gauge", "Maximum number of concurrent steps of this worker."),
    "tasker_steps_active_executions": Described("gauge", "Steps in flight on this worker.", ("namespace",)),
    "tasker_steps_threads_left_behind": Described(
        "gauge", "Threads of this worker still running a handler whose attempt has ended, for example by timeout."
    ),
    "tasker_steps_given_back_total": Described("counter", "Steps released by this worker without an attempt."),
    **OF_BREAKERS,
    "ffi_completion_slow_sends_total": Described(
        "counter", "Results that took too long to store, as the breaker counts it."
    ),
    "mpsc_channel_usage_percent": Described(
        "gauge", "Fill level of a bounded buffer of this worker, in percent.", ("channel", "component")
    ),
    "mpsc_channel_capacity": Described("gauge", "Capacity of the buffer.", ("channel", "component")),
    "mpsc_channel_full_events_total": Described(
        "counter", "Times that the buffer was full: claims stopped, or an event was dropped.", ("channel", "component")
    ),
    "worker_claim_refusals_total": Described(
        "counter", "Times that this worker stopped claiming, or claimed less, by reason.", ("reason",)
    ),
    "worker_handler_semaphore_wait_oldest_ms": Described(
        "gauge", "Age of the longest current wait of a step for a thread or a child process."
    ),
    "tasker_event_listener_active": Described(
        "gauge",
        "1 while all listeners of this process are connected; absent if it only polls.",
        ("mode",),
    ),
    "tasker_event_listener_lag_ms": Described(
        "gauge", "Latency of the last notification check of this process.", ("mode",)
    ),
    "tasker_polling_fallback_active": Described("gauge", "1 while it polls in place of a lost listener.", ("mode",)),
    "tasker_mode_switches_total": Described("counter", "Changes between listening and polling.", ("mode",)),
    "tasker_event_notifications_received_total": Described("counter", "Notifications received by this process."),
    "tasker_listener_reconnections_total": Described("counter", "Reconnections of a lost listener."),
    "tasker_polling_cycles_total": Described("counter", "Polls of queues by this process, notified or not."),
    "tasker_polling_errors_total": Described("counter", "Polls of queues that failed."),
    "tasker_polling_messages_processed_total": Described(
        "counter", "Messages, and steps that wait beside a queue, that they have found and taken."
    ),
    "tasker_polling_messages_found_total": Described(
        "counter", "Those of them that nothing had announced; few where listeners work."
    ),
    "tasker_schedule_fires_total": Described(
        "counter",
        "Fire times of schedules decided by this process: fired, queued, skipped, missed or refused.",
        ("outcome",),
    ),
    "tasker_staleness_detection_runs_total": Described(
        "counter",
        "Searches for stale tasks by this process, since it started. One process at a time searches for all: of what is"
        " counted of it the sum over all processes is that of the fleet.",
    ),
    "tasker_staleness_tasks_detected_total": Described("counter", "Stale tasks that they have found."),
    "tasker_staleness_tasks_transitioned_to_error_total": Described("counter", "Those of them that they have ended."),
    "tasker_staleness_detection_duration_milliseconds": Described(
        "histogram", "A search for stale tasks by this process, all slices of it."
    ),
    "worker_handler_semaphore_wait_ms": Described(
        "histogram", "The wait of a claimed step for a thread or a child process; most do not wait."
    ),
    **{
        name: Described(
            "counter" if name.endswith("_total") else "histogram",
            meaning,
            (*LABELS, "result") if "duration" in name else LABELS,
        )
        for name, meaning in MEANINGS.items()
    },
    **ALIASES,
    **{name: described for name, described in OF_SERVERS.items() if name.startswith(ACCESS)},
}


def samples(observed: ProcessSnapshot) -> Iterator[Sample]:
    """Yield the current metrics of the process."""
    yield Sample("tasker_info", 1, {"version": __version__, "kind": observed.kind})
    yield Sample("tasker_process_up", int(observed.running))
    yield Sample("tasker_process_start_time_seconds", observed.started_at.timestamp())
    for area, health in observed.areas().items():
        yield Sample("tasker_process_health", STATES.get(health.status, 2), {"part": area})
    for service, times in observed.process.supervisor.crashes.items():
        yield Sample("tasker_service_crashes_total", times, {"service": service})
    for state in observed.process.plugins.states():
        yield from _of_plugin(state)
    yield from breaker_samples(observed.process.breakers.readings())
    yield from of_breakers(observed.process.breakers)
    yield from _of_events(observed.process.events)
    yield from of_polls(observed.process.events.tally)
    yield from _of_staleness(observed.process.upkeep.staleness)
    firing = observed.process.upkeep.firing
    for outcome in OUTCOMES:
        yield Sample("tasker_schedule_fires_total", firing.outcomes[outcome] if firing else 0, {"outcome": outcome})
    if observed.kind == "worker":
        load = observed.load()
        yield Sample("tasker_steps_slots", load.slots)
        for namespace, busy in load.busy_in.items():
            yield Sample("tasker_steps_active_executions", busy, {"namespace": namespace})
        yield Sample("tasker_steps_threads_left_behind", load.left_behind)
        yield Sample("tasker_steps_given_back_total", load.given_back)
        yield Sample("ffi_completion_slow_sends_total", observed.process.breakers.slow_results)
        yield Sample("worker_handler_semaphore_wait_oldest_ms", load.waits_ms)
        for reason, times in load.refusals.items():
            yield Sample("worker_claim_refusals_total", times, {"reason": reason})
        yield from of_load(load)
        for buffer in load.buffers:
            yield from _of_buffer(buffer)


def histograms(observed: ProcessSnapshot) -> Sequence[Metric]:
    """Return the histograms that the process itself records."""
    load = observed.load()
    return [observed.process.upkeep.staleness.durations, *([load.waits] if load.waits else []), *load.steps]


def _of_events(events: EventSystem) -> Iterator[Sample]:
    listening, tally, mode = events.listening(), events.tally, {"mode": MODES[events.mode]}
    if events.listeners:
        yield Sample("tasker_event_listener_active", listening.all_listen, mode)
    if listening.lag_seconds is not None:
        yield Sample("tasker_event_listener_lag_ms", listening.lag_seconds * 1000, mode)
    yield Sample("tasker_polling_fallback_active", listening.polls_instead, mode)
    yield Sample("tasker_mode_switches_total", listening.switches, mode)
    yield Sample("tasker_event_notifications_received_total", listening.received)
    yield Sample("tasker_listener_reconnections_total", listening.reconnections)
    yield Sample("tasker_polling_cycles_total", tally.looks)
    yield Sample("tasker_polling_errors_total", tally.failed)
    yield Sample("tasker_polling_messages_processed_total", tally.messages)
    yield Sample("tasker_polling_messages_found_total", tally.messages_by_polling)


def _of_staleness(search: StalenessSearch) -> Iterator[Sample]:
    for name in ("detection_runs", "tasks_detected", "tasks_transitioned_to_error"):
        yield Sample(f"tasker_staleness_{name}_total", search.counts[name])


def _of_buffer(buffer: Buffer) -> Iterator[Sample]:
    named = {"channel": buffer.channel, "component": "worker"}
    yield Sample("mpsc_channel_usage_percent", 100 * buffer.waiting / max(1, buffer.capacity), named)
    yield Sample("mpsc_channel_capacity", buffer.capacity, named)
    if buffer.full is not None:
        yield Sample("mpsc_channel_full_events_total", buffer.full, named)


def _of_plugin(state: PluginState) -> Iterator[Sample]:
    named = {"plugin": state.name}
    yield Sample("tasker_plugin_calls_total", state.delivered, named)
    yield Sample("tasker_plugin_dropped_total", state.dropped, named)
    yield Sample("tasker_plugin_waiting", state.waiting, named)
    yield Sample("tasker_plugin_off", bool(state.off), named)
    for hook, count in state.failures.items():
        yield Sample("tasker_plugin_failures_total", count, {**named, "hook": hook})
