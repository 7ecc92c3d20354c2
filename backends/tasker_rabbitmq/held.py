"""Which messages this process has received and not yet settled: ids, which RabbitMQ does not know, to delivery tags."""

from __future__ import annotations

from tasker.errors import MessagingError
from tasker_rabbitmq.messages import Receipt

LIMIT = 100_000
"""Messages held at most; beyond it receiving is refused."""


class HeldMessages:
    """Receipts by queue and message id. Those whose channel is gone are void and count as not held."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._receipts: dict[tuple[str, int], Receipt] = {}
        self._by_queue: dict[str, int] = {}

    def room(self) -> int:
        """How many more may be held. Raises `MessagingError` when there is no room at all."""
        if len(self._receipts) >= self._limit:
            raise MessagingError(
                f"{self._limit} received messages are neither acknowledged nor given back", hint="settle them first"
            )
        return self._limit - len(self._receipts)

    def put(self, queue: str, receipt: Receipt) -> Receipt | None:
        """Remember; returns the receipt of another copy of the message that was held already."""
        former = self.take(queue, receipt.message_id)
        self._receipts[queue, receipt.message_id] = receipt
        self._by_queue[queue] = self._by_queue.get(queue, 0) + 1
        return former

    def get(self, queue: str, message_id: int) -> Receipt | None:
        """The valid receipt of the message."""
        receipt = self._receipts.get((queue, message_id))
        return None if receipt is None or receipt.void else receipt

    def take(self, queue: str, message_id: int) -> Receipt | None:
        """Like `get`, and the message is no longer held."""
        receipt = self._receipts.pop((queue, message_id), None)
        if receipt is None:
            return None
        self._by_queue[queue] -= 1
        return None if receipt.void else receipt

    def count(self, queue: str) -> int:
        """Messages of the queue that are held."""
        return self._by_queue.get(queue, 0)

    def of(self, queue: str) -> list[Receipt]:
        """The valid receipts of a queue."""
        return [receipt for (name, _), receipt in self._receipts.items() if name == queue and not receipt.void]

    def overdue(self, now: float) -> list[Receipt]:
        """Take those whose deadline has passed; void ones are dropped on the way."""
        keys = [key for key, receipt in self._receipts.items() if receipt.void or receipt.deadline <= now]
        taken = [self.take(*key) for key in keys]
        return [receipt for receipt in taken if receipt is not None]

    def forget(self, queue: str) -> None:
        """The queue was removed, and its messages with it."""
        for key in [key for key in self._receipts if key[0] == queue]:
            self.take(*key)
