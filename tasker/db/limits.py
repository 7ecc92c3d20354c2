"""How long and how many: time-outs of the network and of sessions, sizes of pools."""

from __future__ import annotations

from collections.abc import Mapping

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.database import (
    ACQUIRE_TIMEOUT_SECONDS,
    CONNECT_WAIT_SECONDS,
    IDLE_TIMEOUT_SECONDS,
    MAX_CONNECTIONS,
    MAX_LIFETIME_SECONDS,
    MIN_CONNECTIONS,
    SLOW_ACQUIRE_MS,
    STATEMENT_TIMEOUT_MS,
)

NETWORK: Mapping[str, int] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A server that is gone without a word is noticed within a minute (seconds; the last one milliseconds)."""

SESSION: Mapping[str, int | str] = {
    "statement_timeout": STATEMENT_TIMEOUT_MS,
    "lock_timeout": 5_000,
    "idle_in_transaction_session_timeout": 60_000,
    "idle_session_timeout": 0,
    "tcp_keepalives_idle": 30,
    "tcp_keepalives_interval": 10,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "jit": "off",
}
"""How long the server bears with a session whose client hangs, is frozen or gone: others wait for its locks no longer.

`statement_timeout` does not reach a session that waits for its client to read a large answer; `tcp_user_timeout` does,
and where there is no TCP, a sweep (`queries/sessions.sql`). JIT compilation costs more than
any statement here gains by it.
"""

FIXED: Mapping[str, str] = {
    "search_path": "pg_catalog,pg_temp",
    "default_transaction_isolation": "read committed",
    "DateStyle": "ISO,MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "gin_fuzzy_search_limit": "0",
}
"""What statements and the driver rely on, whatever the URL, the role or the database says.

With this search path nothing in a user's schema is taken for a function, operator or table of the server's. Functions
that are called in sessions that are not ours (a pooler's, a caller's) set the same path themselves.
"""

ENCODING = "UTF8"
"""The `client_encoding` of every session; poolers take it at the start of a connection."""

MIGRATION: Mapping[str, int | str] = {**SESSION, "statement_timeout": 0, "lock_timeout": 0}
"""A migration may take as long as it takes."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The size of a pool and its patience. Times are seconds."""

    max_connections: int = MAX_CONNECTIONS
    min_connections: int = MIN_CONNECTIONS
    """So many are not closed for being idle."""
    acquire_timeout: float = ACQUIRE_TIMEOUT_SECONDS
    idle_timeout: float = IDLE_TIMEOUT_SECONDS
    max_lifetime: float = MAX_LIFETIME_SECONDS
    slow_acquire: float = SLOW_ACQUIRE_MS / 1000
    """A wait for a free connection that takes longer is logged and counted."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """What a process does with its database."""

    statement_timeout_ms: int = STATEMENT_TIMEOUT_MS
    connect_wait_seconds: float = CONNECT_WAIT_SECONDS
    """How long a process that serves waits at its start for a database that cannot be reached."""
    pool: PoolSettings = PoolSettings()
