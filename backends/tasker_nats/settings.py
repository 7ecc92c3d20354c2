"""What can be set about the backend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.messaging import check_url, known_settings
from tasker.errors import MessagingError
from tasker_nats import VARIABLES
from tasker_nats.tls import files_of

DEFAULT_URL = "nats://localhost:4222"


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """Where the server is and how it is used."""

    url: str = field(default_factory=lambda: os.environ.get(VARIABLES[0]) or DEFAULT_URL)
    """Address; several servers of a cluster are separated by commas. `?cafile=FILE` names the certificate to trust,
    `&certfile=FILE&keyfile=FILE` what is shown."""
    prefix: str = "tasker"
    """First part of every name, letters, digits and `_`: several of the engine's databases can share one server."""
    connection_timeout_seconds: float = 10.0
    """How long `open` waits for the server."""
    ack_wait_seconds: float = 30.0
    """After how long the server takes back what a process held that is gone. The same for all processes."""
    delivery_limit: int = 1000
    """How often a message may be received before it is moved to the dead letters."""
    replicas: int = 1
    """Servers of a cluster that keep each new queue, 1 to 5."""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> NatsSettings:
        """The settings in a mapping.

        Raises `MessagingError` for unknown keys, a URL that cannot be taken apart or names what is none of `tls.FILES`,
        and a prefix that names cannot hold.
        """
        settings = cls(**known_settings("nats", given, [item.name for item in fields(cls)]))
        for url in settings.url.split(","):
            check_url("nats", url)
        files_of(settings.url)
        if not re.fullmatch(r"[A-Za-z0-9_]+", settings.prefix, re.ASCII):
            raise MessagingError(f"nats refuses prefix {settings.prefix!r}", retryable=False, hint="use A-Z a-z 0-9 _")
        return settings


DEFAULTS = NatsSettings(DEFAULT_URL)
"""Without any setting or variable."""
