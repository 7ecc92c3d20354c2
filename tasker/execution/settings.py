"""What can be set about a worker."""

from __future__ import annotations

import logging
from dataclasses import field

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import (
    ENQUEUE_WINDOW,
    KEPT_LOG_LINES,
    LEASE_MS,
    STARVATION_MS,
    STEP_GRACE_MS,
    STEP_TIMEOUT_MS,
    VALUE_LIMIT_BYTES,
)
from tasker.contracts.defaults.single_process import SINGLE_PROCESS_CONCURRENCY
from tasker.contracts.defaults.workers import (
    EVENT_BUFFER,
    EVENT_DRAIN_MS,
    LOOP_LAG_MS,
    PUBLISHER_TIMEOUT_MS,
    RESULT_PATH,
    SEEN_EVENTS,
    THREADS,
)
from tasker.contracts.events.subscribing import LIMITS, SubscriberLimits
from tasker.lifecycle.deployment import WORKER_EVENTS, EventSettings
from tasker.lifecycle.pressure import BufferLimits
from tasker.services.engine.rules import DEFAULT_RULES, FleetRules


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Limits and times of one worker. Times are milliseconds."""

    concurrency: int = SINGLE_PROCESS_CONCURRENCY
    """Steps that run at the same time."""
    threads: int = THREADS
    """Threads for handlers that are not asynchronous."""
    window: int = ENQUEUE_WINDOW
    """Enqueued steps per namespace before further ready ones are held back."""
    timeout_ms: int = STEP_TIMEOUT_MS
    """Limit of one attempt where the template sets none."""
    grace_ms: int = STEP_GRACE_MS
    """How long after its timeout a step counts as running before a sweep takes it away."""
    lease_ms: int = LEASE_MS
    """How long a worker that went silent keeps its steps."""
    batch: int = 500
    """Results that one write stores at most."""
    drowse_ms: int = 20
    """How long a worker that was woken stays marked asleep, so that short work costs no marks."""
    result_path: str = RESULT_PATH
    """`inline`: this process moves its tasks on itself; `queued`: it parks results for an orchestrator."""
    events: EventSettings = WORKER_EVENTS
    """How the process learns of work."""
    result_limit_bytes: int = VALUE_LIMIT_BYTES
    """Largest result of a step, as JSON."""
    completion_buffer: BufferLimits = field(default_factory=BufferLimits)
    """Results that wait to be stored before nothing more is claimed."""
    starvation_ms: int = STARVATION_MS
    """How long a step waits for a thread before it is warned of."""
    loop_lag_ms: int = LOOP_LAG_MS
    """How long the event loop may stand still before the handler that blocks it is named in the log; 0: never."""
    publisher_timeout_ms: int = PUBLISHER_TIMEOUT_MS
    """How long a publisher of an event may take."""
    event_buffer: int = EVENT_BUFFER
    """Events that wait for the subscribers of this process; more are dropped."""
    subscribers: SubscriberLimits = LIMITS
    """What each subscriber of this process may take."""
    seen_events: int = SEEN_EVENTS
    """Events remembered, so that one that is told twice reaches subscribers once."""
    log_dropped_events: bool = True
    event_drain_ms: int = EVENT_DRAIN_MS
    """How long the subscribers of this process may take for the last events."""
    kept_log_level: int | None = logging.INFO
    """From which level of `logging` on lines of handlers are kept with their steps; None: none are."""
    kept_log_lines: int = KEPT_LOG_LINES
    """How many of one attempt."""
    name: str | None = None
    """What people call it; it is shown in the registry."""
    rules: FleetRules = DEFAULT_RULES
    """What all processes agree on."""
