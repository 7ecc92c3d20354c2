"""Settings of a worker."""

from __future__ import annotations

import logging
from dataclasses import field

from tasker.dataclasses import dataclass
from tasker.engine.calls import DEFAULT_RULES, FleetRules
from tasker.handlers.claims import LIMITS, SubscriberLimits
from tasker.json_values import VALUE_LIMIT_BYTES
from tasker.messaging.listening_modes import WORKER_EVENTS, EventSettings
from tasker.resilience.pressure import BufferLimits
from tasker.settings.defaults import (
    ENQUEUE_WINDOW,
    EVENT_BUFFER,
    EVENT_DRAIN_MS,
    KEPT_LOG_LINES,
    LEASE_MS,
    LOOP_LAG_MS,
    PUBLISHER_TIMEOUT_MS,
    RESULT_PATH,
    SEEN_EVENTS,
    SINGLE_PROCESS_CONCURRENCY,
    STARVATION_MS,
    STEP_GRACE_MS,
    STEP_TIMEOUT_MS,
    THREADS,
)
from tasker.template.error_rules import ErrorOverride


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Limits and times of one worker. Times are milliseconds."""

    concurrency: int = SINGLE_PROCESS_CONCURRENCY
    """Number of steps that run at the same time."""
    threads: int = THREADS
    """Number of threads for handlers that are not asynchronous."""
    window: int = ENQUEUE_WINDOW
    """Largest number of enqueued steps per namespace; further ready steps wait in the backlog."""
    timeout_ms: int = STEP_TIMEOUT_MS
    """Time limit of one attempt if the template sets none."""
    grace_ms: int = STEP_GRACE_MS
    """Time after its timeout at which a step is taken from its worker."""
    lease_ms: int = LEASE_MS
    """Time without a heartbeat after which a worker loses its steps."""
    batch: int = 500
    """Largest number of results in one write."""
    drowse_ms: int = 20
    """Time for which a woken worker stays marked asleep, so that short work writes no marks."""
    result_path: str = RESULT_PATH
    """`inline`: this process advances its tasks itself; `queued`: it parks results for an orchestrator."""
    events: EventSettings = WORKER_EVENTS
    """Settings of how the process learns of work."""
    result_limit_bytes: int = VALUE_LIMIT_BYTES
    """Largest size of a step's result, in bytes of JSON."""
    completion_buffer: BufferLimits = field(default_factory=BufferLimits)
    """Limits of the results that wait to be stored; a full buffer stops new claims."""
    starvation_ms: int = STARVATION_MS
    """Wait of a step for a thread after which a warning is logged."""
    loop_lag_ms: int = LOOP_LAG_MS
    """Time after which a blocked event loop is logged with the handler that blocks it; 0 disables the check."""
    publisher_timeout_ms: int = PUBLISHER_TIMEOUT_MS
    """Time limit of one call of an event publisher."""
    event_buffer: int = EVENT_BUFFER
    """Largest number of events that wait for the subscribers of this process; further ones are dropped."""
    subscribers: SubscriberLimits = LIMITS
    """Limits of each subscriber of this process."""
    seen_events: int = SEEN_EVENTS
    """Number of remembered events, so that an event published twice reaches subscribers once."""
    log_dropped_events: bool = True
    event_drain_ms: int = EVENT_DRAIN_MS
    """Time that the subscribers of this process have for remaining events when it stops."""
    kept_log_level: int | None = logging.INFO
    """Lowest `logging` level of handlers' lines that are stored with their steps; None stores none."""
    kept_log_lines: int = KEPT_LOG_LINES
    """Largest number of lines stored per attempt."""
    name: str | None = None
    """Human-readable name, shown in the registry."""
    error_rules: tuple[ErrorOverride, ...] = ()
    """Errors after which steps are retried or not, whatever their templates say; the first that names one decides."""
    rules: FleetRules = DEFAULT_RULES
    """Settings that all processes agree on."""
