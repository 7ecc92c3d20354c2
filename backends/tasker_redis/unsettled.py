"""Which messages this process has received and not yet settled."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass

LIMIT = 100_000
"""Messages remembered; the oldest give way, and can then only come back by their visibility timeout."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a message is in its stream, and which of its deliveries was ours."""

    stream_id: bytes
    deliveries: int


class UnsettledMessages:
    """Receipts by queue and message id."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._receipts: dict[tuple[str, int], Receipt] = {}

    def put(self, queue: str, message_id: int, receipt: Receipt) -> None:
        """The message was received by us."""
        self._receipts.pop((queue, message_id), None)
        self._receipts[queue, message_id] = receipt
        if len(self._receipts) > self._limit:
            del self._receipts[next(iter(self._receipts))]

    def get(self, queue: str, message_id: int) -> Receipt | None:
        """Its receipt; None when we do not hold it."""
        return self._receipts.get((queue, message_id))

    def forget(self, queue: str, message_id: int) -> None:
        """The message is settled."""
        self._receipts.pop((queue, message_id), None)
