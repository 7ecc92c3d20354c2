"""`common.database`, `common.retention`, `common.cache`."""

from __future__ import annotations

from typing import Literal

from tasker.settings.formats import DatabaseUrl, RedisUrl, RetentionLine
from tasker.settings.table import Table, choice, flag, several, table, text, whole


class PoolTable(Table):
    """Connections of a program that submits and reads (`App`, commands); workers and orchestrators use a fixed few."""

    max_connections: int = whole(
        25,
        1,
        1000,
        "Maximum number of connections.",
        advice="10 in tests, 10 to 25 in development, 30 to 50 in production; the sum over all processes must stay "
        "below the server's max_connections.",
    )
    min_connections: int = whole(
        5,
        0,
        100,
        "Number of connections kept open when idle; connections are opened only when needed.",
    )
    acquire_timeout_seconds: int = whole(10, 1, 300, "Maximum wait for a free connection; then an error.")
    idle_timeout_seconds: int = whole(300, 1, 3600, "Idle time after which a connection is closed.")
    max_lifetime_seconds: int = whole(1800, 60, 86_400, "Maximum lifetime of a connection.")
    slow_acquire_threshold_ms: int = whole(100, 10, 60_000, "Log waits for a connection that took longer.")


class Database(Table):
    """PostgreSQL database that stores tasks, steps and history."""

    url: DatabaseUrl = text(
        "postgresql://localhost/tasker",
        "The database's URL. Empty: the embedded server of this machine.",
        shortest=0,
        variable="DATABASE_URL",
        advice="Never write a password into a file: use ${DATABASE_URL}, or DATABASE_URL_FILE for a mounted secret.",
        single_process="",
    )
    listen_url: DatabaseUrl = text(
        "",
        "URL of the database connection that listens for notifications. Empty: `url`.",
        shortest=0,
        variable="DATABASE_LISTEN_URL",
        advice="A direct URL of the same database if `url` points to a pooler in transaction mode.",
        live=True,
    )
    statement_timeout_ms: int = whole(
        30_000,
        100,
        3_600_000,
        "Time after which the server cancels a statement; does not apply to migrations.",
    )
    connect_wait_seconds: int = whole(
        30,
        0,
        3600,
        "Time that workers and orchestrators wait at startup for an unavailable database or broker.",
    )
    pool: PoolTable = table(PoolTable)


class Retention(Table):
    """Deletion of finished tasks with all their data. Failed: not `complete`. Without a limit, nothing is deleted."""

    completed_days: int = whole(0, 0, 36_500, "Age in days at which completed tasks are deleted; 0: no age limit.")
    failed_days: int = whole(0, 0, 36_500, "Age in days at which failed tasks are deleted; 0: no age limit.")
    completed_count: int = whole(
        0, 0, 100_000_000, "Maximum number of completed tasks per template version; 0: unlimited."
    )
    failed_count: int = whole(0, 0, 100_000_000, "Maximum number of failed tasks per template version; 0: unlimited.")
    pending_days: int = whole(
        0,
        0,
        36_500,
        "Days for which a pending dead letter protects its task from deletion; 0: while it is pending.",
    )
    rules: tuple[RetentionLine, ...] = several(
        (),
        "Other limits for a namespace, or one of its templates: `payments completed_days=30`, "
        "`payments/charge completed_count=1000 failed_days=365`. They replace all five; an entry without limits "
        "keeps everything.",
    )
    events_days: int = whole(
        30,
        0,
        36_500,
        "Age in days at which domain events are deleted, read or not; 0: never.",
    )
    interval_seconds: int = whole(3600, 60, 86_400, "Interval between pruning runs.")
    batch_size: int = whole(1_000, 1, 100_000, "Steps deleted per transaction; a task is always deleted as a whole.")


class LocalCache(Table):
    """Cache inside a process."""

    max_capacity: int = whole(10_000, 1, 1_000_000, "Maximum number of entries (least recently used is evicted).")


class RedisCache(Table):
    """Cache shared by processes. If it fails, reads go to the database."""

    url: RedisUrl = text("redis://localhost:6379", "The Redis server.", variable="REDIS_URL")
    database: int = whole(0, 0, 15, "Number of the Redis database.")
    max_connections: int = whole(10, 1, 500, "Maximum number of connections.")
    connection_timeout_seconds: int = whole(5, 1, 60, "Maximum wait for a connection.")


class Cache(Table):
    """Caching of answers that are expensive to compute. Off: every read goes to the database."""

    enabled: bool = flag(False, "Use a cache.")
    backend: Literal["redis", "moka"] = choice("redis", "`redis`: shared by all processes; `moka`: in each process.")
    default_ttl_seconds: int = whole(3600, 1, 86_400, "Default lifetime of an entry.")
    template_ttl_seconds: int = whole(
        3600, 1, 86_400, "Lifetime of a template: changes are visible everywhere after this time."
    )
    analytics_ttl_seconds: int = whole(60, 1, 3600, "Lifetime of analytics results.")
    moka: LocalCache = table(LocalCache)
    redis: RedisCache = table(RedisCache)
