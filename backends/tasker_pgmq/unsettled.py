"""Which messages this process has received and not yet settled."""

from __future__ import annotations

LIMIT = 100_000
"""Messages remembered; the oldest give way, and can then only come back by their visibility timeout."""


class UnsettledMessages:
    """Read count by queue and message id: the receipt that PGMQ does not hand out."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._read_counts: dict[tuple[str, int], int] = {}

    def remember(self, queue: str, message_id: int, read_count: int) -> None:
        """The message was received for the `read_count`-th time, by us."""
        self._read_counts.pop((queue, message_id), None)
        self._read_counts[queue, message_id] = read_count
        if len(self._read_counts) > self._limit:
            del self._read_counts[next(iter(self._read_counts))]

    def read_count(self, queue: str, message_id: int) -> int | None:
        """The count it was received with; None when we do not hold it."""
        return self._read_counts.get((queue, message_id))

    def forget(self, queue: str, message_id: int) -> int | None:
        """Like `read_count`, and the message is settled."""
        return self._read_counts.pop((queue, message_id), None)
