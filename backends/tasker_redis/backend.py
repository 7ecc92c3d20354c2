"""Backend on Redis: one stream, one consumer group and one sorted set for each queue."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast
from uuid import uuid4

from tasker.errors import MessagingError
from tasker.messaging.port import Capabilities, MessageAvailable, QueuedMessage, QueueStats
from tasker.settings.addresses import check_queue_name
from tasker_redis.link import Link, interruptible
from tasker_redis.settings import RedisSettings
from tasker_redis.unsettled import Receipt, UnsettledMessages

BURST = 1000
"""Maximum number of messages that one call sends or receives: the server does nothing else meanwhile."""
WAIT_MS = 2000
"""Time that a subscription waits for new messages before it checks for returned ones."""
LONGEST_SECONDS = 30 * 24 * 3600.0
"""Maximum of delays and visibility timeouts (`HORIZON` in the scripts)."""
SEEN_MS = 60_000
"""Time within which a consumer must have asked for messages to be counted."""
FORGOTTEN_MS = 3_600_000
"""Time after which an unseen consumer without messages is removed."""
BEGINNING = b"0-0"


class RedisBackend:
    """`Backend` on Redis streams, with the server's clock.

    A received message stays among the group's pending entries until it is settled. The name of the consumer and the
    count of deliveries show whether it still belongs to this process.
    """

    capabilities = Capabilities(push=True, native_delay=True, ack_extend=True)

    def __init__(self, settings: RedisSettings) -> None:
        self._prefix = settings.prefix
        self._link = Link(settings)
        self._consumer = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self._unsettled = UnsettledMessages()
        self._made: set[str] = set()
        self._epoch: bytes | None = None
        self._cursors: dict[str, bytes] = {}
        self._first = "returned"

    def provider_name(self) -> str:
        return "redis"

    async def open(self) -> None:
        """Connect to the server. Raises `BackendUnavailable`."""
        await self._link.open()

    async def close(self) -> None:
        """Disconnect. Received messages that were not settled return after their visibility timeout."""
        await self._link.close()

    async def health_check(self) -> bool:
        """Return True if the server answers."""
        try:
            with self._link.errors():
                return bool(await self._link.redis.ping())
        except MessagingError:
            return False

    # Queues

    async def create_queue(self, queue: str) -> None:
        self._epoch = await self._link.run("create", self._keys(queue), queue, FORGOTTEN_MS)
        self._made.add(queue)

    async def delete_queue(self, queue: str) -> None:
        await self._link.run("delete", self._keys(queue), queue)
        self._made.discard(queue)
        self._cursors.pop(queue, None)

    async def queue_exists(self, queue: str) -> bool:
        keys = self._keys(queue)
        with self._link.errors():
            return bool(await self._link.redis.exists(keys[0]))

    async def list_queues(self) -> list[str]:
        """Return the names of all queues with this prefix, sorted."""
        with self._link.errors():
            names = await self._link.redis.smembers(self._key("queues"))
        return sorted(name.decode() for name in cast("set[bytes]", names))

    def _keys(self, queue: str) -> list[str]:
        name = check_queue_name(queue)
        return [self._key(f"stream:{name}"), self._key(f"delayed:{name}"), self._key("meta"), self._key("queues")]

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"

    async def _on(self, queue: str, script: str, *args: object) -> Any:
        """Run a script on a queue that must exist."""
        keys = self._keys(queue)
        answer = await self._link.run(script, keys, *args)
        if answer is None and await self._restored():
            answer = await self._link.run(script, keys, *args)
        if answer is None:
            raise MessagingError(f"queue {queue!r} does not exist", hint="create it first")
        return answer

    async def _restored(self) -> bool:
        """Create the queues of this process again if the server came back without its data.

        A queue deleted by another process on the same server stays deleted.
        """
        with self._link.errors():
            epoch = await self._link.redis.hget(self._key("meta"), "epoch")
        if epoch == self._epoch:
            return False
        for queue in sorted(self._made):
            await self.create_queue(queue)
        return True

    # Sending

    async def send_message(self, queue: str, payload: bytes) -> int:
        return (await self._send(queue, [payload], 0))[0]

    async def send_messages(self, queue: str, payloads: Sequence[bytes]) -> list[int]:
        """Send messages in order. If it raises an error, some of them may have been sent."""
        ids: list[int] = []
        for start in range(0, len(payloads), BURST):
            ids += await self._send(queue, payloads[start : start + BURST], 0)
        return ids

    async def send_message_with_delay(self, queue: str, payload: bytes, delay_seconds: float) -> int:
        """Send a message that waits in a sorted set until it is due; the next access to the queue then moves it."""
        return (await self._send(queue, [payload], _milliseconds(delay_seconds)))[0]

    async def _send(self, queue: str, payloads: Sequence[bytes], delay_ms: int) -> list[int]:
        first = int(await self._on(queue, "send", delay_ms, *payloads))
        return list(range(first, first + len(payloads)))

    # Receiving

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[QueuedMessage]:
        """Return up to `limit` messages, at most 1,000. New and returned messages take turns in coming first."""
        if limit < 1:
            return []
        cursor = self._cursors.get(queue, BEGINNING)
        self._first = "new" if self._first == "returned" else "returned"
        hidden = _milliseconds(visibility_timeout)
        answer = await self._on(queue, "receive", self._consumer, min(limit, BURST), hidden, cursor, self._first)
        self._cursors[queue], messages = answer
        return [self._received(queue, *message) for message in messages]

    def _received(self, queue: str, message_id: bytes, payload: bytes, deliveries: int, at: bytes) -> QueuedMessage:
        self._unsettled.put(queue, int(message_id), Receipt(at, deliveries))
        return QueuedMessage(queue, int(message_id), payload, deliveries)

    async def receive_message(self, queue: str, message_id: int, visibility_timeout: float) -> QueuedMessage | None:
        """Raise `MessagingError`: streams cannot fetch by id (`fetch_by_id` is not among the capabilities)."""
        raise MessagingError("a stream gives its messages in order only", retryable=False, hint="use receive_messages")

    # Settling

    async def ack_message(self, queue: str, message_id: int) -> bool:
        """Delete a message from the stream."""
        return (await self._settle(queue, [message_id], "ack"))[0]

    async def ack_messages(self, queue: str, message_ids: Sequence[int]) -> list[bool]:
        """Delete messages from the stream, in one call for each 1,000."""
        starts = range(0, len(message_ids), BURST)
        parts = [await self._settle(queue, message_ids[at : at + BURST], "ack") for at in starts]
        return [settled for part in parts for settled in part]

    async def nack_message(self, queue: str, message_id: int, delay_seconds: float = 0.0) -> bool:
        """Release a message; it is visible again after the delay."""
        return (await self._settle(queue, [message_id], "nack", delay_seconds))[0]

    async def extend_visibility(self, queue: str, message_id: int, seconds: float) -> bool:
        """Hide a message for `seconds` from now."""
        return (await self._settle(queue, [message_id], "extend", seconds))[0]

    async def _settle(self, queue: str, ids: Sequence[int], action: str, seconds: float = 0.0) -> list[bool]:
        receipts = {one: receipt for one in ids if (receipt := self._unsettled.get(check_queue_name(queue), one))}
        if not receipts:
            return [False] * len(ids)
        pairs = [part for one in receipts.values() for part in (one.stream_id, one.deliveries)]
        answers = await self._on(queue, "settle", self._consumer, action, _milliseconds(seconds), *pairs)
        settled = dict(zip(receipts, map(bool, answers), strict=True))
        for message_id, done in settled.items():
            if not done or action != "extend":
                self._unsettled.forget(queue, message_id)
        return [settled.get(message_id, False) for message_id in ids]

    # Monitoring

    async def queue_stats(self, queue: str) -> QueueStats:
        """Return the depth, including delayed messages; the age counts from the time when a message first became
        visible."""
        depth, age_ms, consumers, in_flight = await self._on(queue, "stats", SEEN_MS)
        return QueueStats(queue, depth, None if age_ms < 0 else age_ms / 1000, consumers, in_flight=in_flight)

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[MessageAvailable, None]:
        """Yield a notification for each queue, then one when messages came, came due, or returned.

        It reads the streams outside of the group (XREAD), because a notification must not take the message from a
        consumer. Raises `BackendUnavailable` if the connection is lost: subscribe again.
        """
        stream_keys = {queue: self._keys(queue)[0] for queue in sorted(set(queues))}
        seen: dict[str, bytes] = {}
        async with self._link.waiting() as client:
            while True:
                wait = WAIT_MS
                for queue in stream_keys:
                    last, returned, due_in = await self._on(queue, "look")
                    wait = min(wait, due_in) if due_in >= 0 else wait
                    news = returned or last != seen.get(queue)
                    seen[queue] = last
                    if news:
                        yield MessageAvailable(queue)
                with self._link.errors():
                    streams: Any = {stream_keys[queue]: seen[queue] for queue in stream_keys}
                    await interruptible(client.xread(streams, count=1, block=max(1, wait)))


def _milliseconds(seconds: float) -> int:
    if seconds > LONGEST_SECONDS:
        raise MessagingError(
            f"{seconds:g} seconds are more than Redis can hide a message for, {LONGEST_SECONDS:g}",
            retryable=False,
            hint="keep what is due later in the database",
        )
    return max(0, round(seconds * 1000))
