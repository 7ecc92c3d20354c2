"""Defaults of a process's database connections."""

from __future__ import annotations

STATEMENT_TIMEOUT_MS = 30_000
"""Time after which the server cancels a statement."""

CONNECT_WAIT_SECONDS = 30
"""Time that a server process waits at start for an unreachable database."""

MAX_CONNECTIONS = 25
"""Maximum number of connections in a pool."""

MIN_CONNECTIONS = 5
"""Number of connections that are not closed when idle."""

ACQUIRE_TIMEOUT_SECONDS = 10
"""Maximum wait for a free connection."""

IDLE_TIMEOUT_SECONDS = 300
"""Idle time after which a connection is closed."""

MAX_LIFETIME_SECONDS = 1800
"""Age at which a connection is replaced."""

SLOW_ACQUIRE_MS = 100
"""Wait for a free connection above which it is logged."""
