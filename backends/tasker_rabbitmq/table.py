"""Settings of the backend in the configuration."""

from __future__ import annotations

from typing import Annotated

from tasker.settings.table import Table, number, text, url_of, whole
from tasker_rabbitmq import VARIABLES
from tasker_rabbitmq.settings import DEFAULTS


class RabbitmqTable(Table):
    """RabbitMQ. The server is needed only when `common.queues.backend` chooses it."""

    url: Annotated[str, url_of("amqp", "amqps")] = text(
        DEFAULTS.url,
        "The server; %2F at the end is the virtual host `/`.",
        variable=VARIABLES[0],
    )
    prefetch_count: int = whole(
        DEFAULTS.prefetch_count, 1, 65_535, "Messages that the server hands out before they are acknowledged."
    )
    heartbeat_seconds: int = whole(
        DEFAULTS.heartbeat_seconds, 0, 3600, "Period of the connection's heartbeat. 0: none."
    )
    prefix: str = text(
        DEFAULTS.prefix, "Put before every name, so that several databases can share a virtual host.", shortest=0
    )
    connection_timeout_seconds: float = number(
        DEFAULTS.connection_timeout_seconds,
        0.1,
        3600.0,
        "Limit of one attempt to connect. A start makes one, and ends when it fails.",
    )
    delivery_limit: int = whole(
        DEFAULTS.delivery_limit, 1, 1_000_000, "Returns after which a message is moved to the dead letters."
    )
