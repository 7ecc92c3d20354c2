"""Connection to the broker, maintained by aio-pika, and channels that are reopened when they are closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import aio_pika
from aiormq import Channel
from aiormq.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import AMQPError, AuthenticationError, ChannelInvalidStateError, ProbableAuthenticationError

from tasker.errors import BackendUnavailable, MessagingError
from tasker_rabbitmq.settings import RabbitmqSettings
from tasker_rabbitmq.settling import Settlements

REPLY_SECONDS = 15.0
"""Maximum time for an answer or a confirmation of the broker; during an alarm it confirms nothing."""
LONGEST_SECONDS = 2 * REPLY_SECONDS
"""Limit for calls that the client library's own limits do not end."""
MOMENT_SECONDS = 1.0
"""Time that the end of a subscription waits for the broker; a service that ends late is reported as hanging."""
RECONNECT_SECONDS = 0.5

PUBLISH, RECEIVE, ADMIN = "publish", "receive", "admin"
"""Channels by purpose. An error closes its channel, but does not affect the messages of the others."""


class Link:
    """Robust connections. While they are down, calls fail at once with `BackendUnavailable` instead of waiting.

    Sending uses a separate connection, made with the first send: during an alarm the broker reads nothing more from a
    connection that has sent something, not even acknowledgements, and its queues would never become shorter.
    """

    def __init__(self, settings: RabbitmqSettings) -> None:
        self._settings = settings
        parts = urlsplit(settings.url)
        self._where = f"RabbitMQ at {parts.hostname}:{parts.port or 5672}"
        self._connection: aio_pika.abc.AbstractRobustConnection | None = None
        self._sending: aio_pika.abc.AbstractRobustConnection | None = None
        self._channels: dict[str, Channel] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._unanswered: asyncio.Task[None] | None = None
        """Cleanup task that the broker did not answer in time."""
        self._lock = asyncio.Lock()
        self._admin = asyncio.Lock()
        self.settlements = Settlements()
        self.consuming = asyncio.Lock()
        """Lock for setting up a consumer and its limit."""

    async def open(self) -> None:
        """Connect unless already connected. Raises `BackendUnavailable`."""
        async with self._lock:
            self._connection = self._connection or await self._connect()

    async def _connect(self) -> aio_pika.abc.AbstractRobustConnection:
        settings = self._settings
        _quieten_clients()
        try:
            return await aio_pika.connect_robust(
                settings.url,
                timeout=settings.connection_timeout_seconds,
                heartbeat=settings.heartbeat_seconds,
                reconnect_interval=RECONNECT_SECONDS,
                client_properties={"connection_name": "tasker"},
            )
        except (OSError, AMQPError, TimeoutError, ValueError) as error:
            hint = "check the setting common.queues.rabbitmq.url (RABBITMQ_URL) and that the broker is running"
            may_recover = not isinstance(error, (AuthenticationError, ProbableAuthenticationError, ValueError))
            text = f"cannot connect to {self._where}: {error!r}"
            raise BackendUnavailable(text, retryable=may_recover, hint=hint) from error

    async def close(self) -> None:
        """Disconnect; the broker releases received messages that were not settled.

        Pending cleanup tasks get a moment first, so that messages sent ahead are returned without being counted.
        """
        if self._endings:
            await asyncio.wait(self._endings, timeout=MOMENT_SECONDS)
        connections, self._connection, self._sending = (self._sending, self._connection), None, None
        self._channels.clear()
        for ending in self._endings:
            ending.cancel()
        for connection in connections:
            if connection is not None:
                await _end(connection)

    async def channel(self, purpose: str) -> Channel:
        """Return the open channel for a purpose, a new one if it was closed."""
        async with self._lock:
            transport = await self._to_send() if purpose == PUBLISH else self._transport(self._connection)
            open_channel = self._channels.get(purpose)
            if open_channel is None or open_channel.is_closed:
                async with self.answered():
                    # With confirmations, the broker also refuses messages that cannot be routed.
                    made = await transport.channel(publisher_confirms=purpose == PUBLISH, timeout=REPLY_SECONDS)
                    assert isinstance(made, Channel)
                    self._channels[purpose] = open_channel = made
            return open_channel

    async def _to_send(self) -> AbstractConnection:
        """Return the connection for sending.

        Raises `BackendUnavailable` also while the broker is blocked by a resource alarm.
        """
        self._transport(self._connection)
        if self._sending is None:
            made = await self._connect()
            if self._connection is None:  # closed meanwhile
                await _end(made)
            else:
                self._sending = made
        transport = self._transport(self._sending)
        try:
            async with asyncio.timeout(0):
                await transport.ready()
        except TimeoutError:
            raise self.unavailable("takes no messages: the broker has an alarm, see rabbitmqctl status") from None
        return transport

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[Channel, None]:
        """Return a channel for one caller at a time: checking a missing queue closes it, with all its pending calls."""
        async with self._admin:
            channel = await self.channel(ADMIN)
            async with self.answered(channel):
                try:
                    yield channel
                except asyncio.CancelledError:  # the client closes the channel of a cancelled call, a little later
                    self._channels.pop(ADMIN, None)
                    raise

    def _transport(self, connection: aio_pika.abc.AbstractRobustConnection | None) -> AbstractConnection:
        transport = connection.transport if connection else None
        if transport is None or transport.connection.is_closed:
            raise self.unavailable("is down" if connection else "is not open")
        return transport.connection

    @asynccontextmanager
    async def answered(self, channel: AbstractChannel | None = None) -> AsyncGenerator[None, None]:
        """Convert errors of the client library to `MessagingError`, and limit the time of the block.

        A channel on which a call took too long may never answer again: it is abandoned.

        The client sends through a queue of ten frames. After the loss of a connection this queue is not emptied, and a
        caller that adds a frame waits, even to report that a call took too long.

        A task that is cancelled just as an answer arrives is cancelled nevertheless: the client's limits
        (`asyncio.wait_for` before Python 3.12) would return the answer and forget the cancellation.
        """
        cancellations = _told_to_stop()
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                yield
            if _told_to_stop() > cancellations:
                raise asyncio.CancelledError
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            # This task was not cancelled: the client cancels tasks that wait on a channel that it closes.
            raise self.unavailable("was lost") from error
        except TimeoutError as error:
            if channel is not None:
                self._give_up(channel)
            raise self.unavailable("gave no answer in time") from error
        except (OSError, RuntimeError, ChannelInvalidStateError) as error:
            raise self.unavailable(f"was lost ({error!r})") from error
        except AMQPError as error:
            raise MessagingError(f"RabbitMQ refused a call: {error}") from error

    def _give_up(self, channel: AbstractChannel) -> None:
        """Stop using a channel, and close it: otherwise it would keep its consumers and received messages."""
        self._channels = {purpose: other for purpose, other in self._channels.items() if other is not channel}
        self.afterwards(_end(channel))

    async def briefly(self, work: Coroutine[Any, Any, None]) -> None:
        """Run cleanup work and wait for it for a moment; then it continues in the background like `afterwards`.

        A cancelled caller does not wait for a broker that does not answer: many that end one after the other wait for
        one moment together.
        """
        ending, is_silent = self.afterwards(work), self._unanswered is not None and not self._unanswered.done()
        await asyncio.wait([ending], timeout=0 if is_silent else MOMENT_SECONDS)
        if not (is_silent or ending.done()):
            self._unanswered = ending

    def afterwards(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run cleanup work in the background even if the caller is cancelled, at most until the connection ends.

        Errors of the work are ignored.
        """
        ending = asyncio.create_task(_quietly(work), name="rabbitmq clean-up")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        ending.add_done_callback(lambda _: work.close())  # if it was cancelled before it began
        return ending

    def unavailable(self, problem: str) -> BackendUnavailable:
        hint = "an open backend reconnects automatically: try again"
        return BackendUnavailable(f"the connection to {self._where} {problem}", hint=hint)


def _quieten_clients() -> None:
    """Silence the client libraries: the engine logs an outage once, and their logs of each attempt appear only at
    DEBUG."""
    for name in ("aio_pika", "aiormq"):
        client = logging.getLogger(name)
        if client.level == logging.NOTSET and not client.isEnabledFor(logging.DEBUG):
            client.setLevel(logging.CRITICAL)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    with suppress(MessagingError, TimeoutError, OSError, RuntimeError, AMQPError):
        await work


async def _end(closable: AbstractChannel | aio_pika.abc.AbstractConnection) -> None:
    with suppress(TimeoutError, OSError, RuntimeError, AMQPError):
        async with asyncio.timeout(REPLY_SECONDS):
            await closable.close()


def _told_to_stop() -> int:
    """Return the number of pending cancellations of the running task."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0
