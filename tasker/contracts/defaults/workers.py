"""Defaults of how a worker runs handlers and publishes events."""

from __future__ import annotations

CONCURRENCY = 10
"""Concurrent steps of a fleet's worker."""

THREADS = 16
"""Threads for blocking handlers."""

LOOP_LAG_MS = 1_000
"""Time that a handler may block the event loop before it is logged by name."""

PUBLISHER_TIMEOUT_MS = 5_000
"""Timeout of a publisher of a domain event."""

EVENT_BUFFER = 1_000
"""Events buffered for the in-process subscribers; further events are dropped."""

SUBSCRIBER_BUFFER = 2_000
"""Events buffered for one subscriber; further events are dropped for it."""

SUBSCRIBER_TIMEOUT_MS = 5_000
"""Time for one event after which a slow subscriber is logged by name."""

SEEN_EVENTS = 10_000
"""Number of event ids remembered, so that an event delivered twice reaches subscribers once."""

EVENT_DRAIN_MS = 5_000
"""Time that subscribers get for the last events at shutdown."""

RESULT_PATH = "inline"
"""A worker advances its tasks itself."""

STOP_GRACE_SECONDS = 10.0
"""Time that a stopping program or server waits for running work."""
