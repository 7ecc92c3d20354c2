"""Settings of the backend."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import field, fields
from datetime import UTC, datetime
from typing import Any

from tasker.clock import Clock
from tasker.dataclasses import dataclass
from tasker.messaging.port import check_url, known_settings
from tasker_rabbitmq import VARIABLES

DEFAULT_URL = "amqp://guest:guest@localhost:5672/%2F"


class SystemClock:
    """Clock of the machine."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return a time in seconds that never goes back."""
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class RabbitmqSettings:
    """Address of the broker and settings of its use."""

    url: str = field(default_factory=lambda: os.environ.get(VARIABLES[0]) or DEFAULT_URL)
    """AMQP address; the virtual host `/` is written `%2F`."""
    prefix: str = ""
    """Prefix of every name on the broker, so that several databases can share one virtual host."""
    prefetch_count: int = 100
    """Maximum number of messages of a subscribed queue that the broker sends ahead, 1 to 65535."""
    heartbeat_seconds: int = 30
    """Silence after which the connection counts as lost, 0 to 3600; 0 disables the check."""
    connection_timeout_seconds: float = 30.0
    """Maximum time that `open` waits for the broker."""
    delivery_limit: int = 1000
    """Maximum number of returns of a message before it is moved to the dead letters."""
    clock: Clock = field(default_factory=SystemClock)
    """Clock for visibility timeouts and the timestamps of messages."""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> RabbitmqSettings:
        """Create the settings from a mapping. Raises `MessagingError` for unknown keys and an invalid URL."""
        settings = cls(**known_settings("rabbitmq", given, [item.name for item in fields(cls)]))
        check_url("rabbitmq", settings.url)
        return settings


DEFAULTS = RabbitmqSettings(DEFAULT_URL)
"""Defaults, without any setting or variable."""
