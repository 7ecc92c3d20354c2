"""Events published by handlers: buffered while the handler runs, published with its outcome."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tasker.errors import NotStorable
from tasker.handlers.claims import MOST_BYTES, MOST_EVENTS, HandlerEvent
from tasker.json_values import JsonText, encode

TOO_MANY = f"a handler publishes at most {MOST_EVENTS} events with one result; further ones are left out"
TOO_LATE = "its handler has ended"
NOTHING = JsonText("")
_log = logging.getLogger("tasker.domain_events")


class EventBuffer:
    """Implementation of `HandlerEvents` for one handler call; `carried` are events saved in the step's checkpoint."""

    __slots__ = ("_bytes", "_events", "_lock", "_over")

    def __init__(self, carried: Sequence[Mapping[str, Any]] = ()) -> None:
        self._lock, self._over, self._bytes = threading.Lock(), False, 0
        self._events = [HandlerEvent.from_json(fields, carried=True) for fields in carried] if carried else []
        if carried:
            self._bytes = sum(event.payload.size for event in self._events if event.payload)

    def publish(self, name: str, payload: Mapping[str, Any], condition: str, delivery_mode: str) -> bool:
        """Add an event with a copy of the payload; return False when it is refused."""
        encoded, why = _encoded(payload)
        with self._lock:
            if self._over or len(self._events) > MOST_EVENTS:
                return self._refuse(name)
            why = why or self._too_much(encoded)
            self._bytes += 0 if why else encoded.size
            self._events.append(HandlerEvent(name, None if why else encoded, condition, delivery_mode, why))
        return why is None

    def taken(self) -> tuple[HandlerEvent, ...]:
        """Close the buffer and return its events."""
        with self._lock:
            self._over = True
            return tuple(self._events)

    def _too_much(self, payload: JsonText) -> str | None:
        if len(self._events) == MOST_EVENTS:
            return TOO_MANY
        if (total := self._bytes + payload.size) <= MOST_BYTES:
            return None
        return f"payloads of one handler's result may have {MOST_BYTES:,} bytes together, with this one {total:,}"

    def _refuse(self, name: str) -> bool:
        if self._over:
            text = "Failed to publish domain event - step will continue event_name=%s error=%s"
            _log.warning(text, name, TOO_LATE)
        return False


def _encoded(payload: object) -> tuple[JsonText, str | None]:
    if not isinstance(payload, Mapping):
        return NOTHING, f"its payload is no mapping: {type(payload).__name__}"
    try:
        return encode(dict(payload), limit_bytes=MOST_BYTES), None
    except NotStorable as problem:
        return NOTHING, f"its payload cannot be published: {problem}"
