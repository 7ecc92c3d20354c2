"""Messages that this process has received and not yet settled."""

from __future__ import annotations

LIMIT = 100_000
"""Maximum number of remembered messages; beyond it the oldest are forgotten until their visibility timeout ends."""


class UnsettledMessages:
    """Read counts by queue and message id, as receipts, which PGMQ does not have."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._read_counts: dict[tuple[str, int], int] = {}

    def remember(self, queue: str, message_id: int, read_count: int) -> None:
        self._read_counts.pop((queue, message_id), None)
        self._read_counts[queue, message_id] = read_count
        if len(self._read_counts) > self._limit:
            del self._read_counts[next(iter(self._read_counts))]

    def read_count(self, queue: str, message_id: int) -> int | None:
        """Return the count with which the message was received, or None if this process does not have the message."""
        return self._read_counts.get((queue, message_id))

    def forget(self, queue: str, message_id: int) -> int | None:
        """Return the count like `read_count`, and forget the settled message."""
        return self._read_counts.pop((queue, message_id), None)
