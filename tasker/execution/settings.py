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
from tasker.settings.execution import Execution, Lease, WorkerExecution
from tasker.settings.listening import SeenEvents
from tasker.settings.queues import DomainEvents, HandlerDispatch, HandOff


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Limits and times of one worker. Times are milliseconds."""

    concurrency: int = HandlerDispatch.for_single_process().max_concurrent_handlers
    """Number of steps that run at the same time."""
    threads: int = WorkerExecution.threads
    """Number of threads for handlers that are not asynchronous."""
    window: int = Execution.enqueue_window
    """Largest number of enqueued steps per namespace; further ready steps wait in the backlog."""
    timeout_ms: int = HandlerDispatch.handler_timeout_ms
    """Time limit of one attempt if the template sets none."""
    grace_ms: int = Lease.grace_ms
    """Time after its timeout at which a step is taken from its worker."""
    lease_ms: int = Lease.lease_ms
    """Time without a heartbeat after which a worker loses its steps."""
    batch: int = 500
    """Largest number of results in one write."""
    drowse_ms: int = 20
    """Time for which a woken worker stays marked asleep, so that short work writes no marks."""
    result_path: str = WorkerExecution.result_path
    """`inline`: this process advances its tasks itself; `queued`: it parks results for an orchestrator."""
    events: EventSettings = WORKER_EVENTS
    """Settings of how the process learns of work."""
    result_limit_bytes: int = VALUE_LIMIT_BYTES
    """Largest size of a step's result, in bytes of JSON."""
    completion_buffer: BufferLimits = field(default_factory=BufferLimits)
    """Limits of the results that wait to be stored; a full buffer stops new claims."""
    starvation_ms: int = HandOff.starvation_warning_threshold_ms
    """Wait of a step for a thread after which a warning is logged."""
    loop_lag_ms: int = WorkerExecution.loop_lag_warning_ms
    """Time after which a blocked event loop is logged with the handler that blocks it; 0 disables the check."""
    publisher_timeout_ms: int = HandOff.callback_timeout_ms
    """Time limit of one call of an event publisher."""
    event_buffer: int = DomainEvents.command_buffer_size
    """Largest number of events that wait for the subscribers of this process; further ones are dropped."""
    subscribers: SubscriberLimits = LIMITS
    """Limits of each subscriber of this process."""
    seen_events: int = SeenEvents.deduplication_cache_size
    """Number of remembered events, so that an event published twice reaches subscribers once."""
    log_dropped_events: bool = True
    event_drain_ms: int = DomainEvents.shutdown_drain_timeout_ms
    """Time that the subscribers of this process have for remaining events when it stops."""
    kept_log_level: int | None = logging.INFO
    """Lowest `logging` level of handlers' lines that are stored with their steps; None stores none."""
    kept_log_lines: int = WorkerExecution.kept_log_lines
    """Largest number of lines stored per attempt."""
    name: str | None = None
    """Human-readable name, shown in the registry."""
    rules: FleetRules = DEFAULT_RULES
    """Settings that all processes agree on."""
