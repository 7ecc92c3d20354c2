"""Settings of the backend in the configuration."""

from __future__ import annotations

from typing import Annotated

from tasker.settings.table import NamePrefix, Table, number, text, url_of, whole
from tasker_nats import VARIABLES
from tasker_nats.settings import DEFAULTS


class NatsTable(Table):
    """NATS JetStream. The server is needed only when `common.queues.backend` chooses it."""

    url: Annotated[str, url_of("nats", "tls", "ws", "wss", separator=",")] = text(
        DEFAULTS.url, "The server; those of a cluster are separated by commas.", variable=VARIABLES[0]
    )
    prefix: NamePrefix = text(
        DEFAULTS.prefix, "First part of every name, so that several databases can share a server."
    )
    connection_timeout_seconds: float = number(
        DEFAULTS.connection_timeout_seconds, 0.1, 3600.0, "How long the start waits for the server."
    )
    ack_wait_seconds: float = number(
        DEFAULTS.ack_wait_seconds,
        1.0,
        3600.0,
        "After how long the messages of a dead process go to others. The same for all processes.",
    )
    delivery_limit: int = whole(
        DEFAULTS.delivery_limit, 1, 1_000_000, "Receptions after which a message is moved to the dead letters."
    )
    replicas: int = whole(DEFAULTS.replicas, 1, 5, "Servers of a cluster that keep each new queue.")
