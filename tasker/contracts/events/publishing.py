"""Events that a running handler publishes itself, through a context variable set around each call."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol, Self

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.json_text import JsonText

KEPT_EVENTS = "events"
"""Key of a checkpoint under which the events published before it are stored."""
MOST_EVENTS = 100
"""Maximum number of events that a handler may publish with one result."""
MOST_BYTES = 1024 * 1024
"""Maximum total size of their payloads as JSON, in bytes."""


@dataclass(frozen=True, slots=True)
class HandlerEvent:
    """Event published by a handler itself, in addition to the events that its template declares."""

    name: str
    payload: JsonText | None
    condition: str = "success"
    """Outcome of the attempt with which the event is published."""
    delivery_mode: str = "durable"
    withheld: str | None = None
    """Reason why the event is not published; it then has no payload."""
    carried: bool = False
    """True if the event was published before a checkpoint of its step."""

    def to_json(self) -> dict[str, Any]:
        """Return the form stored in a checkpoint and sent from a child process to its parent."""
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
        """Restore an event from `to_json`; `changed` replaces fields."""
        text = fields["payload"]
        return cls(**{**fields, "payload": None if text is None else JsonText(text), **changed})


class HandlerEvents(Protocol):
    """Receiver of the events that one handler call publishes; thread-safe."""

    def publish(self, name: str, payload: Mapping[str, Any], condition: str, delivery_mode: str) -> bool:
        """Accept an event. Return False, and never raise, if it will not be published."""
        ...


publishing: ContextVar[HandlerEvents | None] = ContextVar("tasker_publishing", default=None)
"""Receiver of the step whose handler runs in this context."""
