"""Messaging API for the engine and its users, independent of the backend."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from itertools import groupby
from typing import Any

from tasker.errors import MessagingError
from tasker.messaging.messages import POINTED_AT, StepHint, pointers_to
from tasker.messaging.port import Backend, Capabilities, CountsTogether, MessageAvailable, QueuedMessage, QueueStats
from tasker.messaging.queues import QueueNames
from tasker.resilience.outage import Outage

BROUGHT_LIMIT = 100
"""Messages of one queue that subscriptions may deliver before they are received."""


class MessagingService:
    """Backend with the queue names of Tasker. Every method raises `MessagingError` if the provider fails."""

    def __init__(self, backend: Backend, names: QueueNames | None = None) -> None:
        self.backend = backend
        self.names = names or QueueNames()
        self._ensured: set[str] = set()
        self._doubted: set[str] = set()
        self._brought: dict[str, asyncio.Queue[QueuedMessage]] = {}

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the backend."""
        return self.backend.capabilities

    def provider_name(self) -> str:
        """Return the name of the backend."""
        return self.backend.provider_name()

    def is_away(self) -> bool:
        """Return True during a logged outage of the provider; always False if messages are stored in the database."""
        outage: Outage | None = getattr(self.backend, "outage", None)
        return outage is not None and outage.is_on

    async def open(self) -> None:
        """Open the connections."""
        await self.backend.open()

    async def close(self) -> None:
        """Close the connections."""
        await self.backend.close()

    async def health_check(self) -> bool:
        """Return True if the provider answers."""
        return await self.backend.health_check()

    # Steps: messages for workers

    async def ensure_namespace(self, namespace: str) -> str:
        """Create the worker queue of a namespace if it does not exist, once per process, and return its name."""
        queue = self.names.step_queue(namespace)
        if queue not in self._ensured:
            await self.backend.create_queue(queue)
            self._ensured.add(queue)
        return queue

    async def send_step_message(self, namespace: str, hint: StepHint) -> int:
        """Send one wake-up message, creating the queue on first use, and return the message's id. Public API."""
        return await self.backend.send_message(await self.ensure_namespace(namespace), hint.encode())

    async def send_hints(self, entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Send the `send` list of an engine function: `namespace`, `step`, `task`, optional `delay_ms`.

        Keeps the order within a namespace, creates queues on first use, and returns the number sent per namespace. Use
        it only for backends that are not transactional, after the commit; the sweep resends what a failure leaves
        unsent.
        """
        sent: dict[str, int] = {}
        for namespace, group in groupby(sorted(entries, key=_namespace), key=_namespace):
            hints = list(group)
            with self._in_doubt(self.names.step_queue(namespace)):
                await self._send_to(await self.ensure_namespace(namespace), hints)
            sent[namespace] = len(hints)
        return sent

    async def _send_to(self, queue: str, entries: Sequence[Mapping[str, Any]]) -> None:
        due = [StepHint.from_send(entry).encode() for entry in entries if not entry.get("delay_ms")]
        if due:
            await self.backend.send_messages(queue, due)
        for entry in entries:
            if delay_ms := entry.get("delay_ms"):
                payload = StepHint.from_send(entry).encode()
                await self.send_message_with_delay(queue, payload, delay_ms / 1000)

    async def receive_step_messages(self, namespace: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Receive up to `limit` wake-up messages of a namespace.

        Decode them with `StepHint.decode` and acknowledge them after the commit.
        """
        with self._in_doubt(self.names.step_queue(namespace)):
            return await self.receive_messages(await self.ensure_namespace(namespace), limit, visibility_timeout)

    @contextmanager
    def _in_doubt(self, queue: str) -> Iterator[None]:
        """Create the queue again on its next use after an error, because the provider may have lost it in a restart."""
        try:
            yield
        except MessagingError:
            self._ensured.discard(queue)
            raise

    async def step_news(self, namespace: str) -> AsyncGenerator[None, None]:
        """Yield when messages of a namespace may be available; see `news`."""
        with self._in_doubt(self.names.step_queue(namespace)):
            async with aclosing(self.news(await self.ensure_namespace(namespace))) as news:
                async for _ in news:
                    yield

    async def news(self, queue: str) -> AsyncGenerator[None, None]:
        """Yield when messages may be available, the first time at once (backends with `push`).

        Messages delivered with a notification are buffered, up to a bound, for the next receive from the queue. Raises
        `MessagingError` if the subscription is lost; call it again.
        """
        brought = self._brought.setdefault(queue, asyncio.Queue(BROUGHT_LIMIT))
        async with aclosing(self.backend.subscribe_many([queue])) as notifications:
            async for notification in notifications:
                if isinstance(notification, QueuedMessage):
                    await brought.put(notification)
                yield

    # Orchestration: messages for orchestrators

    async def ensure_orchestration_queues(self) -> None:
        """Create the three orchestration queues if they do not exist."""
        for queue in self.names.orchestration():
            await self.backend.create_queue(queue)

    async def send_task_request(self, request: Mapping[str, Any]) -> int:
        """Request the creation of a task; the mapping is sent as JSON."""
        return await self._send_json(self.names.task_requests, request)

    async def send_step_result(self, result: Mapping[str, Any]) -> int:
        """Send a pointer to a stored result (step and token). Public API."""
        return await self._send_json(self.names.step_results, result)

    async def send_step_results(self, results: Sequence[Mapping[str, Any]], together: int = POINTED_AT) -> list[int]:
        """Send pointers to stored results in order, up to `together` per message, and return the messages' ids."""
        async with self._made(self.names.step_results) as queue:
            return await self.backend.send_messages(queue, [*pointers_to(results, together)])

    async def send_task_finalization(self, finalization: Mapping[str, Any]) -> int:
        """Request a new evaluation of a task."""
        return await self._send_json(self.names.task_finalizations, finalization)

    async def receive_task_requests(self, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Receive up to `limit` task requests, hidden for `visibility_timeout` seconds."""
        async with self._made(self.names.task_requests) as queue:
            return await self.receive_messages(queue, limit, visibility_timeout)

    async def receive_step_results(self, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Receive up to `limit` pointers to results, hidden for `visibility_timeout` seconds."""
        async with self._made(self.names.step_results) as queue:
            return await self.receive_messages(queue, limit, visibility_timeout)

    async def receive_task_finalizations(self, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Receive up to `limit` finalizations, hidden for `visibility_timeout` seconds."""
        async with self._made(self.names.task_finalizations) as queue:
            return await self.receive_messages(queue, limit, visibility_timeout)

    async def _send_json(self, name: str, message: Mapping[str, Any]) -> int:
        async with self._made(name) as queue:
            return await self.backend.send_message(queue, _encode(message))

    @asynccontextmanager
    async def _made(self, queue: str) -> AsyncGenerator[str, None]:
        """Use an orchestration queue, which processes create when they start.

        After an error it is created again on its next use, because it may have been removed or the provider may have
        lost it.
        """
        if queue in self._doubted:
            await self.backend.create_queue(queue)
            self._doubted.discard(queue)
        try:
            yield queue
        except MessagingError:
            self._doubted.add(queue)
            raise

    # Any queue

    async def create_queue(self, queue: str) -> None:
        """Create the queue if it does not exist."""
        await self.backend.create_queue(queue)

    async def delete_queue(self, queue: str) -> None:
        """Delete the queue and its messages."""
        self._ensured.discard(queue)
        await self.backend.delete_queue(queue)

    async def queue_exists(self, queue: str) -> bool:
        """Return True if the queue exists."""
        return await self.backend.queue_exists(queue)

    async def list_queues(self) -> list[str]:
        """Return the names of all queues, sorted."""
        return await self.backend.list_queues()

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send a message and return its id."""
        return await self.backend.send_message(queue, payload)

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that becomes visible later. Raises `MessagingError` if the backend has no `native_delay`."""
        if not self.capabilities.native_delay:
            raise MessagingError(
                f"the {self.provider_name()} backend cannot delay messages",
                retryable=False,
                hint="keep what is due later in the database, or choose a backend with native_delay",
            )
        return await self.backend.send_message_with_delay(queue, payload, delay_seconds)

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Receive up to `limit` visible messages, hidden from other receivers for `visibility_timeout` seconds."""
        brought = self._brought.get(queue)
        messages = [brought.get_nowait() for _ in range(min(limit, brought.qsize()))] if brought else []
        if len(messages) < limit:
            messages += await self.backend.receive_messages(queue, limit - len(messages), visibility_timeout)
        return messages

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Acknowledge a message. Returns False if this receiver no longer held it."""
        return await self.backend.ack_message(queue, message_id)

    async def ack_messages(self, messages: Sequence[QueuedMessage]) -> None:
        """Acknowledge messages and ignore failures: such a message is delivered again and is then outdated."""
        ids: dict[str, list[int]] = {}
        for message in messages:
            ids.setdefault(message.queue, []).append(message.message_id)
        for queue, of_queue in ids.items():
            with suppress(MessagingError):
                await self.backend.ack_messages(queue, of_queue)

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Return a message to the queue. Returns False if this receiver no longer held it."""
        return await self.backend.nack_message(queue, message_id, delay_seconds)

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Hide a message for `seconds` from now. Returns False if this receiver no longer held it."""
        return await self.backend.extend_visibility(queue, message_id, seconds)

    async def queue_stats(self, queue: str) -> QueueStats:
        """Return the depth and age of the queue."""
        return await self.backend.queue_stats(queue)

    async def all_stats(self, queues: Sequence[str]) -> dict[str, QueueStats]:
        """Return the statistics of the existing queues among these, in one call if the backend supports it."""
        if isinstance(self.backend, CountsTogether):
            return {stats.queue: stats for stats in await self.backend.all_stats(queues)}
        return {queue: await self.queue_stats(queue) for queue in queues if await self.queue_exists(queue)}

    def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable | QueuedMessage, None]:
        """Yield notifications for these queues until the generator is closed."""
        return self.backend.subscribe_many(queues)


def _namespace(entry: Mapping[str, Any]) -> str:
    return str(entry["namespace"])


def _encode(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False).encode()
