"""The defaults of how a worker runs handlers and tells of it."""

from __future__ import annotations

CONCURRENCY = 10
"""Steps that a worker of a fleet runs at the same time."""

THREADS = 16
"""Threads for blocking handlers."""

LOOP_LAG_MS = 1_000
"""How long the event loop may stand still before the handler that blocks it is named."""

PUBLISHER_TIMEOUT_MS = 5_000
"""How long a publisher of a domain event may take."""

EVENT_BUFFER = 1_000
"""Events that wait for the subscribers of the same process; more are dropped."""

SUBSCRIBER_BUFFER = 2_000
"""Events that wait for one of them; more are dropped for it."""

SUBSCRIBER_TIMEOUT_MS = 5_000
"""How long one may take for an event before it is named."""

SEEN_EVENTS = 10_000
"""Events remembered, so that one that is told twice reaches subscribers once."""

EVENT_DRAIN_MS = 5_000
"""How long they may take for the last events."""

RESULT_PATH = "inline"
"""A worker moves its tasks on itself."""

STOP_GRACE_SECONDS = 10.0
"""How long what runs is waited for when a program or a server stops."""
