"""Settings of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.app.configured.engine import rules
from tasker.app.configured.events import worker_events
from tasker.app.configured.resilience import completion_buffer
from tasker.app.configured.unset import is_set
from tasker.execution.settings import WorkerSettings
from tasker.handlers.claims import SubscriberLimits
from tasker.logging.step_log import LEVELS
from tasker.template.error_rules import parse_overrides

if TYPE_CHECKING:
    from tasker.settings.model import Settings
    from tasker.settings.queues import InProcessEvents


def worker_settings(settings: Settings) -> WorkerSettings:
    """Return the limits and times of a worker."""
    common, worker = settings.common.execution, settings.worker
    dispatch, published = worker.mpsc_channels.handler_dispatch, worker.mpsc_channels.domain_events
    return WorkerSettings(
        concurrency=dispatch.max_concurrent_handlers,
        threads=worker.execution.threads,
        window=common.enqueue_window,
        timeout_ms=dispatch.handler_timeout_ms,
        grace_ms=worker.lease.grace_ms,
        lease_ms=worker.lease.lease_ms,
        result_path=worker.execution.result_path,
        events=worker_events(settings),
        name=worker.worker_id if is_set(worker, "worker_id") else None,
        result_limit_bytes=common.result_limit_bytes,
        completion_buffer=completion_buffer(settings),
        starvation_ms=worker.mpsc_channels.ffi_dispatch.starvation_warning_threshold_ms,
        publisher_timeout_ms=worker.mpsc_channels.ffi_dispatch.callback_timeout_ms,
        event_buffer=published.command_buffer_size,
        subscribers=_subscribers(worker.mpsc_channels.in_process_events),
        seen_events=worker.event_systems.worker.metadata.in_process_events.deduplication_cache_size,
        log_dropped_events=published.log_dropped_events,
        event_drain_ms=published.shutdown_drain_timeout_ms,
        kept_log_level=LEVELS[worker.execution.keep_logs],
        kept_log_lines=worker.execution.kept_log_lines,
        loop_lag_ms=worker.execution.loop_lag_warning_ms,
        rules=rules(settings),
        error_rules=tuple(rule for line in worker.execution.error_rules for rule in parse_overrides(line)),
    )


def _subscribers(settings: InProcessEvents) -> SubscriberLimits:
    buffer, timeout_ms = settings.broadcast_buffer_size, settings.dispatch_timeout_ms
    return SubscriberLimits(buffer, timeout_ms, settings.log_subscriber_errors)
