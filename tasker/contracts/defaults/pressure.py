"""Defaults that bound waiting work: in queues, in buffers, at a consumer."""

from __future__ import annotations

CRITICAL_DEPTH = 5000
"""Ready steps of a namespace at which new tasks without priority are refused."""

OVERFLOW_DEPTH = 10_000
"""Ready steps at which tasks of positive priority are refused, too."""

COMPLETION_BUFFER = 1000
"""Results waiting to be stored at which a worker stops claiming."""

BUFFER_WARNING_SHARE = 0.8
"""Fill level, as a share of a buffer's size, at which a warning is logged."""

VISIBILITY_TIMEOUT_SECONDS = 30
"""Time that a received message stays hidden before it is delivered again."""
