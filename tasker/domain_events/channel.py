"""The bounded queue between publishers and the poller of one process. Full means: the event is dropped and counted."""

from __future__ import annotations

from collections import deque
from typing import Any

CAPACITY = 1000


class InProcessChannel:
    """Events waiting for a poller, oldest first. Safe to use from several threads."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.dropped = 0
        self.pollers = 0
        """How many pollers are at work on it."""
        self._events: deque[dict[str, Any]] = deque()

    def send(self, event: dict[str, Any]) -> bool:
        """Add an event; False, and one more in `dropped`, when the queue is full."""
        if len(self._events) >= self.capacity:
            self.dropped += 1
            return False
        self._events.append(event)
        return True

    def receive(self) -> dict[str, Any] | None:
        """The oldest event; None when there is none."""
        try:
            return self._events.popleft()
        except IndexError:
            return None

    def __len__(self) -> int:
        return len(self._events)


shared = InProcessChannel()
"""The channel that publishers and pollers use unless they are given another."""
