"""Messaging on Redis streams: consumer groups, a sorted set for delays. Selected by the name `redis`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.settings.addresses import BackendSettings

if TYPE_CHECKING:
    from tasker.settings.table import Table
    from tasker_redis.backend import RedisBackend

VARIABLES = ("TASKER_REDIS_URL",)


def create(settings: BackendSettings) -> RedisBackend:
    """Return the backend for a mapping of `RedisSettings`' fields, not yet connected. Raises `MessagingError`."""
    from tasker_redis.backend import RedisBackend
    from tasker_redis.settings import RedisSettings

    return RedisBackend(RedisSettings.from_mapping(settings))


def settings_table() -> type[Table]:
    """Return the settings model of `[common.queues.redis]`."""
    from tasker_redis.table import RedisTable

    return RedisTable
