"""Backend for messaging within one process.

No method awaits between reading and changing, so tasks of one event loop never interleave.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Protocol

from tasker.errors import MessagingError
from tasker.messaging.port import Capabilities, MessageAvailable, QueuedMessage, QueueStats
from tasker.settings.addresses import check_queue_name
from tasker_memory.queue import MemoryQueue

DEFAULT_MAX_DEPTH = 1_000_000


class MonotonicClock(Protocol):
    """The part of `tasker.clock.Clock` that the backend needs."""

    def monotonic(self) -> float:
        """Return a time in seconds that never goes back."""
        ...


class SystemClock:
    """Clock of the machine."""

    def monotonic(self) -> float:
        return time.monotonic()


class QueueFull(MessagingError):
    """Error for a full queue; no message of the call was sent."""

    error_type = "queue_full"


class MemoryBackend:
    """`Backend` in the memory of this process, for the tasks of one event loop. Messages end with the process."""

    capabilities = Capabilities(push=True, native_delay=True, ack_extend=True, fetch_by_id=True, shared=False)

    def __init__(self, clock: MonotonicClock, max_depth: int = DEFAULT_MAX_DEPTH) -> None:
        self._clock = clock
        self._max_depth = max_depth
        self._queues: dict[str, MemoryQueue] = {}
        self._ids = itertools.count(1)
        self._subscriptions: dict[asyncio.Event, set[str]] = {}

    def provider_name(self) -> str:
        return "memory"

    async def open(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Delete all messages."""
        self._queues.clear()

    async def health_check(self) -> bool:
        return True

    async def create_queue(self, queue: str) -> None:
        self._queues.setdefault(check_queue_name(queue), MemoryQueue())

    async def delete_queue(self, queue: str) -> None:
        self._queues.pop(check_queue_name(queue), None)

    async def queue_exists(self, queue: str) -> bool:
        return check_queue_name(queue) in self._queues

    async def list_queues(self) -> list[str]:
        return sorted(self._queues)

    async def send_message(self, queue: str, payload: bytes) -> int:
        """Send a message. Raises `QueueFull` at `max_depth` messages."""
        return self._put(queue, [payload], 0.0)[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send all messages, or none and raise `QueueFull`."""
        return self._put(queue, payloads, 0.0)

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that becomes visible, and is announced, after the delay."""
        return self._put(queue, [payload], delay_seconds)[0]

    def _put(self, queue: str, payloads: Sequence[bytes], delay_seconds: float) -> list[int]:
        target = self._queue(queue)
        depth = len(target.messages)
        if depth + len(payloads) > self._max_depth:
            raise QueueFull(
                f"queue {queue!r} holds {depth} of {self._max_depth} messages, no room for {len(payloads)}",
                hint="receive and acknowledge messages, or raise max_depth",
            )
        now = self._clock.monotonic()
        ids = [next(self._ids) for _ in payloads]
        for message_id, payload in zip(ids, payloads, strict=True):
            target.put(message_id, bytes(payload), now, now + delay_seconds)
        self._wake(queue)
        return ids

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Return up to `limit` visible messages in the order in which they were sent."""
        source = self._queue(queue)
        now = self._clock.monotonic()
        return [self._received(queue, taken) for taken in source.take(limit, now, now + visibility_timeout)]

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Return the message with that id if it is visible, else None."""
        now = self._clock.monotonic()
        taken = self._queue(queue).take_one(message_id, now, now + visibility_timeout)
        return self._received(queue, message_id) if taken else None

    def _received(self, queue: str, message_id: int) -> QueuedMessage:
        message = self._queues[queue].messages[message_id]
        return QueuedMessage(queue, message_id, message.payload, message.read_count)

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Delete a message. The tasks of this process share its messages: an id does not tell which of them received
        it."""
        return self._queue(queue).remove(message_id)

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        return [self._queue(queue).remove(message_id) for message_id in message_ids]

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Release a message; it is visible again after the delay."""
        moved = self._queue(queue).move(message_id, self._clock.monotonic() + delay_seconds, taken=False)
        self._wake(queue)
        return moved

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Hide a message for `seconds` from now."""
        return self._queue(queue).move(message_id, self._clock.monotonic() + seconds, taken=True)

    async def queue_stats(self, queue: str) -> QueueStats:
        """Return the depth, the age and the number of subscriptions of a queue."""
        source = self._queue(queue)
        oldest = source.oldest()
        age = None if oldest is None else self._clock.monotonic() - oldest
        consumers = sum(queue in queues for queues in self._subscriptions.values())
        in_flight = sum(message.taken for message in source.messages.values())
        return QueueStats(queue, len(source.messages), age, consumers, in_flight=in_flight)

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable, None]:
        """Yield a notification for each queue with visible messages, then after each send and when a hidden message is
        due.

        Messages that arrive between two notifications are announced by one.
        """
        queue_names = {check_queue_name(queue) for queue in queues}
        for queue in queue_names:
            self._queue(queue)
        news = asyncio.Event()
        self._subscriptions[news] = queue_names
        try:
            for queue in sorted(queue_names):
                yield MessageAvailable(queue)
            while True:
                await self._wait(news, queue_names)
                news.clear()
                for queue in self._with_messages(queue_names):
                    yield MessageAvailable(queue)
        finally:
            del self._subscriptions[news]

    async def _wait(self, news: asyncio.Event, queues: Iterable[str]) -> None:
        due = [queue.next_due() for name in queues if (queue := self._queues.get(name))]
        moments = [moment for moment in due if moment is not None]
        timeout = max(0.0, min(moments) - self._clock.monotonic()) if moments else None
        try:
            await asyncio.wait_for(news.wait(), timeout)
        except TimeoutError:
            return

    def _with_messages(self, queues: Iterable[str]) -> list[str]:
        now = self._clock.monotonic()
        return sorted(name for name in queues if (queue := self._queues.get(name)) and queue.has_visible(now))

    def _wake(self, queue: str) -> None:
        for news, queues in self._subscriptions.items():
            if queue in queues:
                news.set()

    def _queue(self, queue: str) -> MemoryQueue:
        try:
            return self._queues[check_queue_name(queue)]
        except KeyError:
            raise MessagingError(f"queue {queue!r} does not exist", hint="create it first") from None
