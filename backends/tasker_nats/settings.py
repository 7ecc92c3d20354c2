"""Settings of the backend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import MessagingError
from tasker.messaging.port import check_url, known_settings
from tasker_nats import VARIABLES
from tasker_nats.tls import files_of

DEFAULT_URL = "nats://localhost:4222"


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """Address of the server and settings of its use."""

    url: str = field(default_factory=lambda: os.environ.get(VARIABLES[0]) or DEFAULT_URL)
    """Address; several servers of a cluster are separated by commas. `?cafile=FILE` names the trusted certificate,
    `&certfile=FILE&keyfile=FILE` the client certificate."""
    prefix: str = "tasker"
    """First part of every name, letters, digits and `_`: several Tasker databases can share one server."""
    connection_timeout_seconds: float = 10.0
    """Maximum time that `open` waits for the server."""
    ack_wait_seconds: float = 30.0
    """Time after which the server releases the messages of a process that is gone. The same for all processes."""
    delivery_limit: int = 1000
    """Maximum number of deliveries of a message before it is moved to the dead letters."""
    replicas: int = 1
    """Number of servers of a cluster that store each new queue, 1 to 5."""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> NatsSettings:
        """Create the settings from a mapping.

        Raises `MessagingError` for unknown keys, an invalid URL, a URL with other query keys than `tls.FILES`, and a
        prefix that is not allowed in names.
        """
        settings = cls(**known_settings("nats", given, [item.name for item in fields(cls)]))
        for url in settings.url.split(","):
            check_url("nats", url)
        files_of(settings.url)
        if not re.fullmatch(r"[A-Za-z0-9_]+", settings.prefix, re.ASCII):
            raise MessagingError(f"nats refuses prefix {settings.prefix!r}", retryable=False, hint="use A-Z a-z 0-9 _")
        return settings


DEFAULTS = NatsSettings(DEFAULT_URL)
"""Defaults, without any setting or variable."""
