"""Settings of the backend."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from tasker.dataclasses import dataclass
from tasker.messaging.port import check_url, known_settings
from tasker_redis import VARIABLES

DEFAULT_URL = "redis://localhost:6379/0"


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Address of the server and settings of its use."""

    url: str = field(default_factory=lambda: os.environ.get(VARIABLES[0]) or DEFAULT_URL)
    """Address: `redis://`, `rediss://` or `unix://`; the path is the number of the database."""
    prefix: str = "tasker"
    """First part of every key, so that several Tasker databases can share one server."""
    connection_timeout_seconds: float = 10.0
    """Maximum time to wait for a connection."""
    max_connections: int = 10
    """Maximum number of connections for calls; every subscription has one more of its own."""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> RedisSettings:
        """Create the settings from a mapping. Raises `MessagingError` for unknown keys and an invalid URL."""
        settings = cls(**known_settings("redis", given, [item.name for item in fields(cls)]))
        check_url("redis", settings.url)
        return settings


DEFAULTS = RedisSettings(DEFAULT_URL)
"""Defaults, without any setting or variable."""
