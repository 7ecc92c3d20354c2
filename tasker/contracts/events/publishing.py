"""Events that a handler publishes itself, while it runs: set around each call of a handler, as `running` is."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol, Self

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.json_text import JsonText

KEPT_EVENTS = "events"
"""Where a checkpoint keeps those that were published before it."""
MOST_EVENTS = 100
"""Events that a handler may publish itself with one result."""
MOST_BYTES = 1024 * 1024
"""How large their payloads may be together, as JSON."""


@dataclass(frozen=True, slots=True)
class HandlerEvent:
    """An event that a handler has published itself: beyond those that its template declares, in the same words."""

    name: str
    payload: JsonText | None
    condition: str = "success"
    """The outcome of the attempt with which it is published."""
    delivery_mode: str = "durable"
    withheld: str | None = None
    """Why it is not published; it has no payload then."""
    carried: bool = False
    """It was published before a checkpoint of its step."""

    def to_json(self) -> dict[str, Any]:
        """As it goes into a checkpoint, and from a child process to its parent."""
        return {
            "name": self.name,
            "payload": self.payload and self.payload.text,
            "condition": self.condition,
            "delivery_mode": self.delivery_mode,
            "withheld": self.withheld,
            "carried": self.carried,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], **changed: Any) -> Self:
        """What `to_json` was made of."""
        text = fields["payload"]
        return cls(**{**fields, "payload": None if text is None else JsonText(text), **changed})


class HandlerEvents(Protocol):
    """Takes what one call of a handler publishes, from any thread."""

    def publish(self, name: str, payload: Mapping[str, Any], condition: str, delivery_mode: str) -> bool:
        """Take an event. False, and never an error, where it will not be published."""
        ...


publishing: ContextVar[HandlerEvents | None] = ContextVar("tasker_publishing", default=None)
"""Of the step whose handler is running in this context."""
