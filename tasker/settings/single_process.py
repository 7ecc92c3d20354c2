"""Defaults of `tasker run`, `tasker dev` and `App`, where one process does everything and often no file exists."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from tasker.settings.defaults import (
    SINGLE_PROCESS_CONCURRENCY,
    SINGLE_PROCESS_CRITICAL_DEPTH,
    SINGLE_PROCESS_DECISION_DEPTH,
    SINGLE_PROCESS_OVERFLOW_DEPTH,
    SINGLE_PROCESS_SLOW_COMPLETION_MS,
    SINGLE_PROCESS_WARN_DECISION_DEPTH,
)
from tasker.template.names import MAX_BACKOFF_MS

SINGLE_PROCESS: MappingProxyType[str, Any] = MappingProxyType(
    {
        "common.backoff.default_backoff_seconds": (),
        "common.backoff.jitter_enabled": False,
        "common.backoff.max_backoff_seconds": MAX_BACKOFF_MS // 1000,
        "common.database.url": "",
        "common.queues.queue_depth_thresholds.critical_threshold": SINGLE_PROCESS_CRITICAL_DEPTH,
        "common.queues.queue_depth_thresholds.overflow_threshold": SINGLE_PROCESS_OVERFLOW_DEPTH,
        "orchestration.decision_points.max_decision_depth": SINGLE_PROCESS_DECISION_DEPTH,
        "orchestration.decision_points.warn_threshold_depth": SINGLE_PROCESS_WARN_DECISION_DEPTH,
        "worker.circuit_breakers.ffi_completion_send.slow_send_threshold_ms": SINGLE_PROCESS_SLOW_COMPLETION_MS,
        "worker.handlers.allow": ("*",),
        "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers": SINGLE_PROCESS_CONCURRENCY,
    }
)
"""Dotted path -> default value, overridden by every file and every environment variable."""
