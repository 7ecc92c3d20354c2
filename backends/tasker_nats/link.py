"""Connection to the server, maintained by the client library, and the calls of JetStream that the backend uses."""

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
"""Maximum time for an answer of the server."""


class Link:
    """Connection to the server. While it is down, calls fail at once with `BackendUnavailable` instead of waiting."""

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._trouble: Exception | None = None
        self.generation = 0
        """Number of reconnects; messages received before the last one count as released."""

    async def open(self) -> None:
        """Connect unless already connected.

        Raises `BackendUnavailable`, and `MessagingError` for unusable certificate files.
        """
        if self._client is None:
            client, files = Client(), tls.files_of(self._settings.url)
            encrypted = tls.context(files) if files else None  # else the client creates one if the server requires it
            try:
                connecting = client.connect(
                    tls.plain(self._settings.url),
                    tls=encrypted,
                    name="tasker",
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=1,
                    ping_interval=10,  # the connection counts as lost after two without an answer
                    error_cb=self._note,
                    reconnected_cb=self._reconnected,
                )
                await asyncio.wait_for(connecting, self._settings.connection_timeout_seconds)
            except (OSError, Error, ValueError) as error:
                # the client cannot close a connection that was never open
                with suppress(AttributeError, AssertionError):
                    await client.close()
                raise self._unavailable(f"cannot be made: {self._trouble or error!r}") from error
            self._client = client

    async def _note(self, error: Exception) -> None:
        self._trouble = error

    async def _reconnected(self) -> None:
        self.generation += 1

    async def close(self) -> None:
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
        hint = "check the server's address and that it is running; an open backend reconnects automatically"
        return BackendUnavailable(f"the connection to NATS at {where} {problem}", hint=hint)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # includes timeouts
            raise self._unavailable(f"was lost or gives no answer ({error!r})") from error
        except Error as error:
            raise MessagingError(f"NATS refused a call: {error!r}") from error

    async def request(self, subject: str, body: bytes) -> bytes | None:
        """Return the answer to a request on that subject, or None if it has no responder."""
        with self._errors():
            try:
                return (await self._up().request(subject, body, timeout=REPLY_SECONDS)).data
            except NoRespondersError:
                return None

    async def api(self, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any] | None:
        """Call JetStream's API; return None if the named object does not exist."""
        reply = await self.request(f"$JS.API.{path}", json.dumps(body or {}).encode())
        if reply is None:
            raise self._unavailable("reaches no JetStream; start nats-server with -js")
        return _checked(json.loads(reply))

    async def publish_nowait(self, subject: str, payload: bytes = b"") -> None:
        """Publish without waiting; the server reads it before any later call."""
        with self._errors():
            await self._up().publish(subject, payload)

    async def publish(
        self, subject: str, payloads: Sequence[bytes], headers: dict[str, str] | None = None
    ) -> list[int] | None:
        """Store messages in order, and return their sequence numbers after the confirmations, or None if no stream
        exists."""
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
        """Return up to `limit` messages that the consumer has now. Without such a consumer there is no answer."""
        client, messages = self._up(), list[Msg]()
        request = json.dumps({"batch": limit, "no_wait": True}).encode()
        async with self.subscribed([client.new_inbox()]) as (inbox,):
            with self._errors():
                await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", request, reply=inbox.subject)
                while len(messages) < limit and not _is_status(message := await inbox.next_msg(timeout=REPLY_SECONDS)):
                    messages.append(message)
        return messages

    @asynccontextmanager
    async def subscribed(
        self, subjects: Sequence[str], on_message: Callable[[Msg], Awaitable[None]] | None = None
    ) -> AsyncIterator[list[Subscription]]:
        """Subscribe to the subjects for the duration of the block."""
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
    """Return True for an answer that is a status, not a message: no more messages, or no responder."""
    return not message.reply and "Status" in (message.headers or {})


def _checked(answer: dict[str, Any]) -> dict[str, Any] | None:
    error = answer.get("error")
    if error and error.get("code") != 404:
        raise MessagingError(f"JetStream refused a call: {error.get('description')} (code {error.get('err_code')})")
    return None if error else answer
