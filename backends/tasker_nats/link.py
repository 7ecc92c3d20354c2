"""The connection to the server, kept up by the client, and the few calls of JetStream that are needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error, NoRespondersError

from tasker.errors import BackendUnavailable, MessagingError
from tasker_nats import tls
from tasker_nats.settings import NatsSettings

REPLY_SECONDS = 5.0
"""How long the server may take to answer."""


class Link:
    """One connection. Calls while it is down fail at once with `BackendUnavailable`; they never wait for it."""

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._trouble: Exception | None = None
        self.generation = 0
        """How often the connection was made again; what was received before counts as given back."""

    async def open(self) -> None:
        """Connect; nothing happens when it is open. Raises `BackendUnavailable`, and `MessagingError` for files of
        certificates that cannot be used."""
        if self._client is None:
            client, files = Client(), tls.files_of(self._settings.url)
            encrypted = tls.context(files) if files else None  # else the client makes one where the server wants it
            try:
                connecting = client.connect(
                    tls.plain(self._settings.url),
                    tls=encrypted,
                    name="tasker",
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=1,
                    ping_interval=10,  # two without an answer, and the connection counts as lost
                    error_cb=self._note,
                    reconnected_cb=self._reconnected,
                )
                await asyncio.wait_for(connecting, self._settings.connection_timeout_seconds)
            except (OSError, Error, ValueError) as error:
                with suppress(AttributeError, AssertionError):  # clients cannot close what was never open
                    await client.close()
                raise self._unavailable(f"cannot be made: {self._trouble or error!r}") from error
            self._client = client

    async def _note(self, error: Exception) -> None:
        self._trouble = error

    async def _reconnected(self) -> None:
        self.generation += 1

    async def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _up(self) -> Client:
        if self._client is None:
            raise self._unavailable("is not open")
        if not self._client.is_connected:
            raise self._unavailable("is down")
        return self._client

    def _unavailable(self, problem: str) -> BackendUnavailable:
        where = ", ".join(url.rpartition("@")[2] for url in self._settings.url.split(","))
        hint = "check the server's address and that it is running; an open backend connects again by itself"
        return BackendUnavailable(f"the connection to NATS at {where} {problem}", hint=hint)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # a timeout is one, too
            raise self._unavailable(f"was lost or gives no answer ({error!r})") from error
        except Error as error:
            raise MessagingError(f"NATS refused a call: {error!r}") from error

    async def request(self, subject: str, body: bytes) -> bytes | None:
        """What somebody answers on that subject; None when nobody is there."""
        with self._errors():
            try:
                return (await self._up().request(subject, body, timeout=REPLY_SECONDS)).data
            except NoRespondersError:
                return None

    async def api(self, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any] | None:
        """One call of JetStream's interface; None when what it names does not exist."""
        reply = await self.request(f"$JS.API.{path}", json.dumps(body or {}).encode())
        if reply is None:
            raise self._unavailable("reaches no JetStream; start nats-server with -js")
        return _checked(json.loads(reply))

    async def tell(self, subject: str, payload: bytes = b"") -> None:
        """Publish without waiting for anything; the server reads it before any later call."""
        with self._errors():
            await self._up().publish(subject, payload)

    async def publish(
        self, subject: str, payloads: Sequence[bytes], headers: dict[str, str] | None = None
    ) -> list[int] | None:
        """Store in order and wait for the confirmations; their sequence numbers, None when no stream takes them."""
        client = self._up()
        async with self.subscribed([client.new_inbox()]) as (inbox,):
            with self._errors():
                for payload in payloads:
                    await client.publish(subject, payload, reply=inbox.subject, headers=headers)
                replies = [await inbox.next_msg(timeout=REPLY_SECONDS) for _ in payloads]
        if any(_is_status(reply) for reply in replies):
            return None
        return [answer["seq"] for reply in replies if (answer := _checked(json.loads(reply.data)))]

    async def pull(self, stream: str, consumer: str, limit: int) -> list[Msg]:
        """Up to `limit` messages that the consumer has now. When it does not exist there is no answer."""
        client, messages = self._up(), list[Msg]()
        request = json.dumps({"batch": limit, "no_wait": True}).encode()
        async with self.subscribed([client.new_inbox()]) as (inbox,):
            with self._errors():
                await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", request, reply=inbox.subject)
                while len(messages) < limit and not _is_status(found := await inbox.next_msg(timeout=REPLY_SECONDS)):
                    messages.append(found)
        return messages

    @asynccontextmanager
    async def subscribed(
        self, subjects: Sequence[str], on_message: Callable[[Msg], Awaitable[None]] | None = None
    ) -> AsyncIterator[list[Subscription]]:
        """Subscriptions that end with the block."""
        client, made = self._up(), list[Subscription]()
        try:
            with self._errors():
                for subject in subjects:
                    made.append(await client.subscribe(subject, cb=on_message))
            yield made
        finally:
            with suppress(Error):
                for subscription in made:
                    await subscription.unsubscribe()


def _is_status(message: Msg) -> bool:
    """True for an answer that is no message: no more messages, nobody there."""
    return not message.reply and "Status" in (message.headers or {})


def _checked(answer: dict[str, Any]) -> dict[str, Any] | None:
    error = answer.get("error")
    if error and error.get("code") != 404:
        raise MessagingError(f"JetStream refused a call: {error.get('description')} (code {error.get('err_code')})")
    return None if error else answer
