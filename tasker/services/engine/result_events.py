"""The events of a result: what is written with it, and what is told in this process once it is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.events.publishing import HandlerEvent
from tasker.contracts.json_text import JsonText

if TYPE_CHECKING:
    from tasker.domain_events.publisher import BasePublisher


@dataclass(frozen=True, slots=True)
class AnnouncedEvents:
    """One event as subscribers get it, or why it is not published.

    `payload` is None where the engine has it from the result; `publisher` is told that the event was accepted.
    """

    event: Mapping[str, Any] | None = None
    publisher: BasePublisher | None = None
    payload: JsonText | None = None
    metadata: JsonText | None = None
    withheld: str | None = None
    took_ms: float = 0.0
    """How long it took to make it."""

    def stored(self, delivery_mode: str) -> dict[str, Any] | None:
        """What `tasker.write_events` must know of it; None: what it makes of the result is the event."""
        if self.withheld is not None or self.event is None:
            return {"w": self.withheld or "nothing was made of it"}
        if delivery_mode == "durable" and self.payload is None and self.publisher is None:
            return None
        said = {"p": self.payload, "m": self.metadata, "by": self.event["metadata"]["fired_by"]}
        return {"id": self.event["event_id"], **{name: value for name, value in said.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class ResultEvents:
    """The events of one result: `stored` by their numbers, `here` those to tell in this process.

    Those that the handler published itself are numbered behind those that its step declares.
    """

    stored: Mapping[str, Any] = field(default_factory=dict)
    here: tuple[tuple[str, AnnouncedEvents], ...] = ()
    """With their delivery modes, in the order of their numbers."""

    def and_published(
        self, announced: AnnouncedEvents, number: int, event: HandlerEvent, *, told: bool
    ) -> ResultEvents:
        """These and one that the handler published itself; it is for this process where it is `told`.

        The engine gets each with its condition: it is the one that knows which outcome is accepted.
        """
        said = {"n": event.name, "d": event.delivery_mode, "c": event.condition}
        stored = {} if event.delivery_mode == "fast" else {str(number): {**(announced.stored("durable") or {}), **said}}
        here = ((event.delivery_mode, announced),) if told and announced.event is not None else ()
        return ResultEvents({**self.stored, **stored}, (*self.here, *here))

    def and_(self, announced: AnnouncedEvents, number: int, delivery_mode: str) -> ResultEvents:
        """These and one more."""
        stored = None if delivery_mode == "fast" else announced.stored(delivery_mode)
        told = announced.event is not None
        return ResultEvents(
            self.stored if stored is None else {**self.stored, str(number): stored},
            (*self.here, (delivery_mode, announced)) if told else self.here,
        )
