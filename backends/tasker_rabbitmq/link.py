"""The connection to the broker: kept up by aio-pika, used through channels that are opened again when they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import aio_pika
from aiormq.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import AMQPError, ChannelInvalidStateError

from tasker.errors import BackendUnavailable, MessagingError
from tasker_rabbitmq.settings import RabbitmqSettings

REPLY_SECONDS = 15.0
"""How long the broker may take to answer or to confirm; a broker in an alarm state confirms nothing."""
RECONNECT_SECONDS = 0.5

PUBLISH, RECEIVE, ADMIN = "publish", "receive", "admin"
"""Channels by purpose. What fails on one (a missing queue closes its channel) leaves the messages of the others alone."""


class Link:
    """One robust connection. Calls while it is down fail at once with `BackendUnavailable`; they never wait for it."""

    def __init__(self, settings: RabbitmqSettings) -> None:
        self._settings = settings
        self._connection: aio_pika.abc.AbstractRobustConnection | None = None
        self._channels: dict[str, AbstractChannel] = {}
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Connect; nothing happens when it is open. Raises `BackendUnavailable`."""
        async with self._lock:
            if self._connection is None:
                self._connection = await self._connect()

    async def close(self) -> None:
        """Disconnect; the broker puts back what was received and not settled."""
        async with self._lock:
            connection, self._connection = self._connection, None
            self._channels.clear()
            if connection is not None:
                await connection.close()

    async def channel(self, purpose: str) -> AbstractChannel:
        """The open channel for a purpose; a new one when it was closed."""
        async with self._lock:
            found = self._channels.get(purpose)
            if found is None or found.is_closed:
                with self.errors():
                    found = await self._transport().channel(publisher_confirms=purpose == PUBLISH, on_return_raises=True)
                self._channels[purpose] = found
            return found

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what the client raises into `MessagingError`."""
        try:
            yield
        except ChannelInvalidStateError as error:
            raise self._unavailable(f"was lost: {error}") from error
        except (ConnectionError, OSError, RuntimeError) as error:  # the client raises RuntimeError on a closed connection
            raise self._unavailable(f"was lost: {error!r}") from error
        except TimeoutError as error:
            raise self._unavailable(f"gave no answer within {REPLY_SECONDS:g} seconds") from error
        except AMQPError as error:
            raise MessagingError(f"RabbitMQ refused a call: {error}") from error

    async def _connect(self) -> aio_pika.abc.AbstractRobustConnection:
        settings = self._settings
        try:
            return await aio_pika.connect_robust(
                settings.url, timeout=settings.connection_timeout_seconds, heartbeat=settings.heartbeat_seconds,
                reconnect_interval=RECONNECT_SECONDS, client_properties={"connection_name": "tasker"},
            )
        except (ConnectionError, OSError, AMQPError, TimeoutError) as error:
            hint = "check the setting common.queues.rabbitmq.url (RABBITMQ_URL) and that the broker is running"
            raise BackendUnavailable(f"cannot connect to {self._where()}: {error}", hint=hint) from error

    def _transport(self) -> AbstractConnection:
        if self._connection is None:
            raise BackendUnavailable("the rabbitmq backend is not open", retryable=False, hint="await backend.open() first")
        transport = self._connection.transport
        if transport is None or transport.connection.is_closed:
            raise self._unavailable("is down, connecting again")
        return transport.connection

    def _unavailable(self, what: str) -> BackendUnavailable:
        return BackendUnavailable(f"the connection to {self._where()} {what}", hint="it is retried by itself")

    def _where(self) -> str:
        parts = urlsplit(self._settings.url)
        return f"RabbitMQ at {parts.hostname}:{parts.port or (5671 if parts.scheme == 'amqps' else 5672)}"
