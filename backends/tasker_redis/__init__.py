"""Messaging on Redis streams: consumer groups, a sorted set for delays. Chosen by the name `redis`."""

from __future__ import annotations

from tasker.contracts.messaging import BackendSettings
from tasker_redis.backend import RedisBackend
from tasker_redis.settings import RedisSettings

__all__ = ["RedisBackend", "create"]


def create(settings: BackendSettings) -> RedisBackend:
    """The backend for a mapping of `RedisSettings`' fields, not yet connected. Raises `MessagingError`."""
    return RedisBackend(RedisSettings.from_mapping(settings))
