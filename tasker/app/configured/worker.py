"""What a worker is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.app.configured.engine import rules
from tasker.app.configured.unset import is_set
from tasker.execution.settings import WorkerSettings

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def worker_settings(settings: Settings) -> WorkerSettings:
    """Limits and times of a worker."""
    common, worker = settings.common.execution, settings.worker
    dispatch = worker.mpsc_channels.handler_dispatch
    return WorkerSettings(
        concurrency=dispatch.max_concurrent_handlers,
        threads=worker.execution.threads,
        window=common.enqueue_window,
        timeout_ms=dispatch.handler_timeout_ms,
        grace_ms=worker.lease.grace_ms,
        lease_ms=worker.lease.lease_ms,
        result_path=worker.execution.result_path,
        poll_ms=poll_ms(settings),
        result_limit_bytes=common.result_limit_bytes,
        rules=rules(settings),
    )


def poll_ms(settings: Settings) -> int:
    """The longest pause between two looks at the queue: the most specific of the three keys that is set."""
    system = settings.worker.event_systems.worker
    poller, pgmq = system.metadata.fallback_poller, settings.common.queues.pgmq
    if is_set(poller, "polling_interval_ms"):
        return poller.polling_interval_ms
    if is_set(system.timing, "fallback_polling_interval_seconds"):
        return system.timing.fallback_polling_interval_seconds * 1000
    if settings.common.queues.backend == "pgmq" and is_set(pgmq, "poll_interval_ms"):
        return pgmq.poll_interval_ms
    return poller.polling_interval_ms
