"""Limits of database access: network and session timeouts, and pool sizes."""

from __future__ import annotations

from collections.abc import Mapping

from tasker.settings.database import Database

NETWORK: Mapping[str, int] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Network timeouts that detect a silently vanished server within a minute (seconds; the last one is milliseconds)."""

SESSION: Mapping[str, int | str] = {
    "statement_timeout": Database.statement_timeout_ms,
    "lock_timeout": 5_000,
    "idle_in_transaction_session_timeout": 60_000,
    "idle_session_timeout": 0,
    "tcp_keepalives_idle": 30,
    "tcp_keepalives_interval": 10,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "jit": "off",
}
"""Session timeouts for clients that hang, are frozen or have gone: their locks block others no longer than this.

`statement_timeout` does not end a session that waits for its client to read a large answer; `tcp_user_timeout` does,
and without TCP a sweep does (`queries/sessions.sql`). JIT compilation costs more than any statement here gains by it.
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
"""Settings that statements and the driver rely on; they override the URL, the role and the database.

With this search path no object in a user's schema shadows a function, operator or table of the server. Functions called
in other sessions (a pooler's, a caller's) set the same path themselves.
"""

ENCODING = "UTF8"
"""The `client_encoding` of every session; poolers accept it at the start of a connection."""

MIGRATION: Mapping[str, int | str] = {**SESSION, "statement_timeout": 0, "lock_timeout": 0}
"""Session settings of a migration: without statement or lock timeout."""
