"""The defaults of a process's connections to its database."""

from __future__ import annotations

STATEMENT_TIMEOUT_MS = 30_000
"""The server cancels a statement that takes longer."""

CONNECT_WAIT_SECONDS = 30
"""How long a process that serves waits at its start for a database that cannot be reached."""

MAX_CONNECTIONS = 25
"""Connections of a pool at most."""

MIN_CONNECTIONS = 5
"""So many are not closed for being idle."""

ACQUIRE_TIMEOUT_SECONDS = 10
"""How long a free connection is waited for."""

IDLE_TIMEOUT_SECONDS = 300
"""A connection that was idle for so long is closed."""

MAX_LIFETIME_SECONDS = 1800
"""A connection is replaced after so long."""

SLOW_ACQUIRE_MS = 100
"""A wait for a free connection that takes longer is logged."""
