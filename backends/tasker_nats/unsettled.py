"""Messages that this process has received and not yet settled."""

from __future__ import annotations

from tasker.dataclasses import dataclass

LIMIT = 100_000
"""Maximum number of remembered messages; beyond it the oldest are forgotten until the server releases them."""


@dataclass(slots=True)
class Receipt:
    """Receipt of a message, with the subject for its verdict and the time until which it belongs to this process."""

    reply: str
    deadline: float
    """End of its visibility timeout, on the monotonic clock."""
    confirmed: float
    """Time at which the server last learned that the message is in progress."""
    generation: int
    """Number of the connection on which it was received."""


class UnsettledMessages:
    """Receipts by queue and message id, the oldest first."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self.receipts: dict[tuple[str, int], Receipt] = {}

    def put(self, key: tuple[str, int], receipt: Receipt) -> None:
        self.receipts.pop(key, None)
        self.receipts[key] = receipt
        if len(self.receipts) > self._limit:
            del self.receipts[next(iter(self.receipts))]

    def take_ended(self, now: float, generation: int) -> list[Receipt]:
        """Remove and return the receipts whose deadline has passed or whose connection was lost."""
        ended = [key for key, one in self.receipts.items() if one.deadline <= now or one.generation != generation]
        return [self.receipts.pop(key) for key in ended]
