"""Bounded queue between publishers and the poller of one process. If it is full, an event is dropped and counted."""

from __future__ import annotations

from collections import deque
from typing import Any

CAPACITY = 1000


class InProcessChannel:
    """Events waiting for a poller, oldest first. Thread-safe."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.dropped = 0
        self.pollers = 0
        """Number of running pollers of this channel."""
        self._events: deque[dict[str, Any]] = deque()

    def send(self, event: dict[str, Any]) -> bool:
        """Add an event. If the channel is full, count it in `dropped` and return False."""
        if len(self._events) >= self.capacity:
            self.dropped += 1
            return False
        self._events.append(event)
        return True

    def receive(self) -> dict[str, Any] | None:
        """Return the oldest event, or None."""
        try:
            return self._events.popleft()
        except IndexError:
            return None

    def __len__(self) -> int:
        return len(self._events)


shared = InProcessChannel()
"""Channel that publishers and pollers use by default."""
