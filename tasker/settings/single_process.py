"""Defaults of `tasker run`, `tasker dev` and `App`, where one process does everything and often no file exists."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

SINGLE_PROCESS: MappingProxyType[str, Any] = MappingProxyType(
    {
        "common.backoff.default_backoff_seconds": (),
        "common.backoff.jitter_enabled": False,
        "common.backoff.max_backoff_seconds": 30,
        "common.database.url": "",
        "common.queues.queue_depth_thresholds.critical_threshold": 100_000,
        "common.queues.queue_depth_thresholds.overflow_threshold": 200_000,
        "orchestration.decision_points.max_decision_depth": 3,
        "orchestration.decision_points.warn_threshold_depth": 2,
        "worker.circuit_breakers.ffi_completion_send.slow_send_threshold_ms": 10_000,
        "worker.handlers.allow": ("*",),
        "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers": 100,
    }
)
"""Dotted path -> value, below every file and every environment variable."""
