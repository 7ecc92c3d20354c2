"""The backend's table of the configuration."""

from __future__ import annotations

from typing import Annotated

from tasker.contracts.settings import NamePrefix, Table, number, text, url_of, whole
from tasker_nats import VARIABLES


class NatsTable(Table):
    """NATS JetStream. The server is needed only when `common.queues.backend` chooses it."""

    url: Annotated[str, url_of("nats", "tls", "ws", "wss", separator=",")] = text(
        "nats://localhost:4222", "The server; those of a cluster are separated by commas.", variable=VARIABLES[0]
    )
    prefix: NamePrefix = text("tasker", "First part of every name, so that several databases can share a server.")
    connection_timeout_seconds: float = number(10.0, 0.1, 3600.0, "How long the start waits for the server.")
    ack_wait_seconds: float = number(
        30.0, 1.0, 3600.0, "After how long the messages of a dead process go to others. The same for all processes."
    )
    delivery_limit: int = whole(1000, 1, 1_000_000, "Receptions after which a message is moved to the dead letters.")
    replicas: int = whole(1, 1, 5, "Servers of a cluster that keep each new queue.")
