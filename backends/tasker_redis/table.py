"""Settings of the backend in the configuration."""

from __future__ import annotations

from typing import Annotated

from tasker.settings.table import Table, number, text, url_of, whole
from tasker_redis import VARIABLES
from tasker_redis.settings import DEFAULTS


class RedisTable(Table):
    """Redis streams. The server is needed only when `common.queues.backend` chooses it."""

    url: Annotated[str, url_of("redis", "rediss", "unix")] = text(
        DEFAULTS.url,
        "The server and its database.",
        variable=VARIABLES[0],
        advice="Not REDIS_URL, which is the cache's: a cache may throw its keys away, queues must not.",
    )
    prefix: str = text(DEFAULTS.prefix, "First part of every key, so that several databases can share a server.")
    connection_timeout_seconds: float = number(
        DEFAULTS.connection_timeout_seconds, 0.1, 3600.0, "How long to wait for a connection."
    )
    max_connections: int = whole(
        DEFAULTS.max_connections, 1, 10_000, "Connections for calls; every subscription has one more."
    )
