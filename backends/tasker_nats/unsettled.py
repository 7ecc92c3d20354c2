"""Which messages this process has received and not yet settled."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass

LIMIT = 100_000
"""Messages remembered; the oldest give way, and come back when the server takes them back."""


@dataclass(slots=True)
class Receipt:
    """A received message: the subject to which a verdict is sent, and until when it is ours."""

    reply: str
    deadline: float
    """When its visibility timeout ends, on the monotonic clock."""
    confirmed: float
    """When the server last knew that somebody works on it."""
    generation: int
    """The connection by which it came."""


class UnsettledMessages:
    """Receipts by queue and message id, the oldest first."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self.receipts: dict[tuple[str, int], Receipt] = {}

    def put(self, key: tuple[str, int], receipt: Receipt) -> None:
        """The message was received by us."""
        self.receipts.pop(key, None)
        self.receipts[key] = receipt
        if len(self.receipts) > self._limit:
            del self.receipts[next(iter(self.receipts))]

    def take_ended(self, now: float, generation: int) -> list[Receipt]:
        """Those whose deadline has passed or whose connection was lost; they are not ours any more."""
        ended = [key for key, one in self.receipts.items() if one.deadline <= now or one.generation != generation]
        return [self.receipts.pop(key) for key in ended]
