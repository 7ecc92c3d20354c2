"""Messages that this process has received and not yet settled."""

from __future__ import annotations

from tasker.dataclasses import dataclass

LIMIT = 100_000
"""Maximum number of remembered messages; beyond it the oldest are forgotten until their visibility timeout ends."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Receipt of a message: its position in the stream, and the delivery that this process received."""

    stream_id: bytes
    deliveries: int


class UnsettledMessages:
    """Receipts by queue and message id."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._receipts: dict[tuple[str, int], Receipt] = {}

    def put(self, queue: str, message_id: int, receipt: Receipt) -> None:
        self._receipts.pop((queue, message_id), None)
        self._receipts[queue, message_id] = receipt
        if len(self._receipts) > self._limit:
            del self._receipts[next(iter(self._receipts))]

    def get(self, queue: str, message_id: int) -> Receipt | None:
        return self._receipts.get((queue, message_id))

    def forget(self, queue: str, message_id: int) -> None:
        self._receipts.pop((queue, message_id), None)
