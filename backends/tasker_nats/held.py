"""Which messages this process has received and not yet settled."""

from __future__ import annotations

from dataclasses import dataclass

from tasker.errors import MessagingError

LIMIT = 100_000
"""Messages that one process may hold."""


@dataclass(slots=True)
class Receipt:
    """A received message, and how it is settled."""

    reply: str
    """The subject to which a verdict is sent."""
    reads: int
    deadline: float
    """When its visibility timeout ends, on the backend's clock."""
    confirmed: float
    """When the server last knew that somebody works on it, on the loop's clock."""
    generation: int
    """The connection by which it came."""


class HeldMessages:
    """Receipts by queue and message id."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._receipts: dict[tuple[str, int], Receipt] = {}

    def room(self) -> int:
        """How many more may be held. Raises `MessagingError` when there is no room."""
        room = self._limit - len(self._receipts)
        if room < 1:
            hint = "acknowledge messages or give them back"
            raise MessagingError(f"{self._limit} received messages are not settled", hint=hint)
        return room

    def put(self, queue: str, message_id: int, receipt: Receipt) -> None:
        """The message was received by us."""
        self._receipts[queue, message_id] = receipt

    def get(self, queue: str, message_id: int) -> Receipt | None:
        """Its receipt; None when we do not hold it."""
        return self._receipts.get((queue, message_id))

    def forget(self, queue: str, message_id: int) -> None:
        """The message is no longer held."""
        self._receipts.pop((queue, message_id), None)

    def all(self) -> list[Receipt]:
        """Everything that is held."""
        return list(self._receipts.values())

    def take_ended(self, now: float, generation: int) -> list[Receipt]:
        """Those whose deadline has passed or whose connection was lost; they are no longer held."""
        ended = [key for key, one in self._receipts.items() if one.deadline <= now or one.generation != generation]
        return [self._receipts.pop(key) for key in ended]
