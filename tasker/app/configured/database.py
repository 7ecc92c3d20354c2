"""Database settings of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.db.limits import DatabaseSettings, PoolSettings

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def database_settings(settings: Settings) -> DatabaseSettings:
    """Return the timeouts and the pool size."""
    database = settings.common.database
    pool = database.pool
    return DatabaseSettings(
        statement_timeout_ms=database.statement_timeout_ms,
        connect_wait_seconds=database.connect_wait_seconds,
        pool=PoolSettings(
            max_connections=pool.max_connections,
            min_connections=pool.min_connections,
            acquire_timeout=pool.acquire_timeout_seconds,
            idle_timeout=pool.idle_timeout_seconds,
            max_lifetime=pool.max_lifetime_seconds,
            slow_acquire=pool.slow_acquire_threshold_ms / 1000,
        ),
    )
