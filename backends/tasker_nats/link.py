"""The connection to the server, kept up by the client, and the few calls of JetStream that are needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error, NoRespondersError

from tasker.errors import BackendUnavailable, MessagingError
from tasker_nats.settings import NatsSettings

REPLY_SECONDS = 5.0
"""How long the server may take to answer."""
RECONNECT_SECONDS = 0.25
PING_SECONDS = 10
"""Two of these without an answer, and the connection counts as lost."""


class Link:
    """One connection. Calls while it is down fail at once with `BackendUnavailable`; they never wait for it."""

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._trouble: Exception | None = None
        self.generation = 0
        """How often the connection was made again; what was received before counts as given back."""
        self.on_reconnect: set[Callable[[], None]] = set()

    async def open(self) -> None:
        """Connect; nothing happens when it is open. Raises `BackendUnavailable`."""
        if self._client is None:
            client = Client()
            try:
                await asyncio.wait_for(self._connect(client), self._settings.connection_timeout_seconds)
            except (OSError, Error, TimeoutError, ValueError) as error:
                await client.close()
                raise self._unavailable(f"cannot be made: {self._trouble or error!r}") from error
            self._client = client

    async def _connect(self, client: Client) -> None:
        await client.connect(
            self._settings.url.split(","),
            name="tasker",
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_SECONDS,
            ping_interval=PING_SECONDS,
            error_cb=self._note,
            reconnected_cb=self._reconnected,
        )

    async def _note(self, error: Exception) -> None:
        self._trouble = error

    async def _reconnected(self) -> None:
        self.generation += 1
        for tell in list(self.on_reconnect):
            tell()

    async def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def client(self) -> Client:
        """The client of the connection, which is up as far as we know."""
        if self._client is None:
            raise self._unavailable("is not open")
        if not self._client.is_connected:
            raise self._unavailable("is down")
        return self._client

    def _unavailable(self, problem: str) -> BackendUnavailable:
        where = ", ".join(url.rpartition("@")[2] for url in self._settings.url.split(","))
        hint = "check the server's address and that it is running; an open backend connects again by itself"
        return BackendUnavailable(f"the connection to NATS at {urlsplit(where).netloc or where} {problem}", hint=hint)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what the client raises into `MessagingError`."""
        try:
            yield
        except TimeoutError as error:
            raise self._unavailable(f"gave no answer within {REPLY_SECONDS:g} seconds") from error
        except OSError as error:
            raise self._unavailable(f"was lost ({error!r})") from error
        except Error as error:
            raise MessagingError(f"NATS refused a call: {error!r}") from error

    async def api(self, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any] | None:
        """One call of JetStream's interface; None when what it names does not exist."""
        client = self.client
        request = json.dumps(body or {}).encode()
        with self.errors():
            try:
                reply = await client.request(f"$JS.API.{path}", request, timeout=REPLY_SECONDS)
            except NoRespondersError as error:
                raise self._unavailable("reaches no JetStream; start nats-server with -js") from error
        return _checked(json.loads(reply.data))

    async def confirm(self, reply_subject: str, verdict: bytes) -> bool:
        """Settle a received message and wait until the server has taken note. False when its queue is gone."""
        client = self.client
        with self.errors():
            try:
                await client.request(reply_subject, verdict, timeout=REPLY_SECONDS)
            except NoRespondersError:
                return False
        return True

    async def tell(self, subject: str, payload: bytes = b"") -> None:
        """Publish without waiting for anything."""
        client = self.client
        with self.errors():
            await client.publish(subject, payload)

    async def flush(self) -> None:
        """Wait until the server has read all that was sent."""
        client = self.client
        with self.errors():
            await client.flush(timeout=round(REPLY_SECONDS))

    async def publish(
        self, subject: str, payloads: Sequence[bytes], headers: dict[str, str] | None = None
    ) -> list[int] | None:
        """Store in order and wait for the confirmations; their sequence numbers, None when no stream takes them."""
        async with self._inbox() as inbox:
            for payload in payloads:
                await self.client.publish(subject, payload, reply=inbox.subject, headers=headers)
            replies = [await inbox.next_msg(timeout=REPLY_SECONDS) for _ in payloads]
        if any(_status(reply) for reply in replies):
            return None
        answers = [_checked(json.loads(reply.data)) for reply in replies]
        return [answer["seq"] for answer in answers if answer is not None]

    async def pull(self, stream: str, consumer: str, limit: int) -> list[Msg] | None:
        """Up to `limit` messages that the consumer has now; None when it does not exist."""
        request = json.dumps({"batch": limit, "no_wait": True}).encode()
        messages: list[Msg] = []
        async with self._inbox() as inbox:
            await self.client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", request, reply=inbox.subject)
            while len(messages) < limit:
                message = await inbox.next_msg(timeout=REPLY_SECONDS)
                if status := _status(message):
                    return None if status == "503" else messages
                messages.append(message)
        return messages

    @asynccontextmanager
    async def _inbox(self) -> AsyncIterator[Subscription]:
        client = self.client
        with self.errors():
            inbox = await client.subscribe(client.new_inbox())
            try:
                yield inbox
            finally:
                with suppress(Error):
                    await inbox.unsubscribe()


def _status(message: Msg) -> str | None:
    """The code of an answer that is no message: 404 no more messages, 503 nobody there."""
    return None if message.reply else (message.headers or {}).get("Status")


def _checked(answer: dict[str, Any]) -> dict[str, Any] | None:
    error = answer.get("error")
    if error is None:
        return answer
    if error.get("code") == 404:
        return None
    raise MessagingError(f"JetStream refused a call: {error.get('description')} (code {error.get('err_code')})")


