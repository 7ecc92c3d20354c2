"""The connection to the broker: kept up by aio-pika, used through channels that are opened again when they are gone."""

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
"""How long the broker may take to answer or to confirm; in an alarm state it confirms nothing."""
LONGEST_SECONDS = 2 * REPLY_SECONDS
"""What ends a call that the client's own limits do not end."""
MOMENT_SECONDS = 1.0
"""How long the end of a subscription waits for the broker; a service that ends late is told as hanging."""
RECONNECT_SECONDS = 0.5

PUBLISH, RECEIVE, ADMIN = "publish", "receive", "admin"
"""Channels by purpose. An error on one (it closes the channel) leaves the messages of the others alone."""


class Link:
    """Robust connections. Calls while they are down fail at once with `BackendUnavailable`; they never wait for it.

    What sends has a connection of its own, made when something is sent first: in an alarm the broker reads nothing more
    from a connection that has sent something, acknowledgements neither, and then its queues never become shorter.
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
        """What was waited for in vain, for a moment."""
        self._lock = asyncio.Lock()
        self._admin = asyncio.Lock()
        self.settlements = Settlements()
        self.consuming = asyncio.Lock()
        """Held while a consumer and its limit are set up."""

    async def open(self) -> None:
        """Connect; nothing happens when it is open. Raises `BackendUnavailable`."""
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
            mends = not isinstance(error, (AuthenticationError, ProbableAuthenticationError, ValueError))
            text = f"cannot connect to {self._where}: {error!r}"
            raise BackendUnavailable(text, retryable=mends, hint=hint) from error

    async def close(self) -> None:
        """Disconnect; the broker puts back what was received and not settled.

        What is done afterwards has a moment for that: messages that were sent ahead go back uncounted.
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
        """The open channel for a purpose; a new one when it was closed."""
        async with self._lock:
            transport = await self._to_send() if purpose == PUBLISH else self._transport(self._connection)
            found = self._channels.get(purpose)
            if found is None or found.is_closed:
                async with self.answered():
                    # confirming, it refuses what cannot be delivered, too
                    made = await transport.channel(publisher_confirms=purpose == PUBLISH, timeout=REPLY_SECONDS)
                    assert isinstance(made, Channel)
                    self._channels[purpose] = found = made
            return found

    async def _to_send(self) -> AbstractConnection:
        """Raises `BackendUnavailable` also while the broker has said that it takes no messages."""
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
        """A channel for one caller at a time: asking for a missing queue closes it, with all that is under way."""
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
        """Turns what the client raises into `MessagingError`, and bounds how long it takes.

        A channel on which a call took too long may never answer again: it is given up.

        The client sends through a queue of ten frames. Once a connection is lost nobody empties it, and whoever puts
        something in waits, also to say that a call took too long.

        Who is told to stop just as an answer comes is stopped all the same: the client's limits (`asyncio.wait_for`
        before Python 3.12) let the answer count and forget the rest.
        """
        told = _told_to_stop()
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                yield
            if _told_to_stop() > told:
                raise asyncio.CancelledError
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            # nobody has cancelled this task: the client cancels what waits on a channel that it closes
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
        """Use it no more, and close it: else its consumers and what it has received would stay with it."""
        self._channels = {purpose: kept for purpose, kept in self._channels.items() if kept is not channel}
        self.afterwards(_end(channel))

    async def briefly(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this, and wait a moment for it; then it goes on as what is done `afterwards`. Who is told to stop does not
        wait for a broker that gives no answer: many that end one after the other wait for one moment together."""
        ending, is_silent = self.afterwards(work), self._unanswered is not None and not self._unanswered.done()
        await asyncio.wait([ending], timeout=0 if is_silent else MOMENT_SECONDS)
        if not (is_silent or ending.done()):
            self._unanswered = ending

    def afterwards(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do this though the caller is cancelled, at the latest until the end of the connection; it may fail then."""
        ending = asyncio.create_task(_quietly(work), name="rabbitmq clean-up")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        ending.add_done_callback(lambda _: work.close())  # if it was cancelled before it began
        return ending

    def unavailable(self, problem: str) -> BackendUnavailable:
        """The error that says what is wrong with the connection."""
        hint = "an open backend connects again by itself: try again"
        return BackendUnavailable(f"the connection to {self._where} {problem}", hint=hint)


def _quieten_clients() -> None:
    """The engine tells of an outage once; what the clients say at each attempt is for whoever asks for all."""
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
    """How often the running task was, and has not taken it back."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0
