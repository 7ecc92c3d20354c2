"""Queue of messages in order, with a heap of hidden messages by the time at which they become visible again."""

from __future__ import annotations

from heapq import heappop, heappush

from tasker.dataclasses import dataclass


@dataclass(slots=True)
class Message:
    """Message of a queue. `visible_at` is a reading of the clock; `taken` is True after the message was received."""

    payload: bytes
    sent_at: float
    visible_at: float
    read_count: int = 0
    taken: bool = False


class MemoryQueue:
    """Queue with times that are readings of the backend's clock, in seconds.

    The two heaps may contain entries that a later change made stale; the message itself is authoritative.
    """

    def __init__(self) -> None:
        self.messages: dict[int, Message] = {}
        self._ready: list[int] = []
        self._hidden: list[tuple[float, int]] = []

    def put(self, message_id: int, payload: bytes, now: float, visible_at: float) -> None:
        self.messages[message_id] = Message(payload, now, visible_at)
        heappush(self._hidden, (visible_at, message_id))

    def take(self, limit: int, now: float, hide_until: float) -> list[int]:
        """Hide up to `limit` visible messages; return their ids in the order in which they were sent."""
        self._surface(now)
        taken: list[int] = []
        while self._ready and len(taken) < limit:
            message_id = heappop(self._ready)
            if self.take_one(message_id, now, hide_until):
                taken.append(message_id)
        return taken

    def take_one(self, message_id: int, now: float, hide_until: float) -> bool:
        """Hide that message; return False if it is gone or not visible."""
        message = self.messages.get(message_id)
        if message is None or message.visible_at > now:
            return False
        message.read_count += 1
        message.taken = True
        self._hide(message_id, message, hide_until)
        return True

    def remove(self, message_id: int) -> bool:
        """Delete a received message; return False if it was not received."""
        message = self.messages.get(message_id)
        if message is None or not message.taken:
            return False
        del self.messages[message_id]
        return True

    def move(self, message_id: int, visible_at: float, *, taken: bool) -> bool:
        """Change the time at which a received message becomes visible."""
        message = self.messages.get(message_id)
        if message is None or not message.taken:
            return False
        message.taken = taken
        self._hide(message_id, message, visible_at)
        return True

    def next_due(self) -> float | None:
        """Return the time at which the next hidden message may become visible."""
        return self._hidden[0][0] if self._hidden else None

    def has_visible(self, now: float) -> bool:
        """Return True if `take` would return a message."""
        self._surface(now)
        return bool(self._ready)

    def oldest(self) -> float | None:
        """Return the time at which the oldest message was sent."""
        first = next(iter(self.messages.values()), None)
        return first.sent_at if first else None

    def _hide(self, message_id: int, message: Message, visible_at: float) -> None:
        message.visible_at = visible_at
        heappush(self._hidden, (visible_at, message_id))

    def _surface(self, now: float) -> None:
        while self._hidden and self._hidden[0][0] <= now:
            visible_at, message_id = heappop(self._hidden)
            message = self.messages.get(message_id)
            if message is not None and message.visible_at == visible_at:
                heappush(self._ready, message_id)
