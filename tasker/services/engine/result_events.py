"""Events of a result: what is written with it, and what is published in this process once it is accepted."""

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
    """One event as subscribers get it, or the reason why it is withheld.

    `payload` is None if the engine takes it from the result; `publisher` is notified once the event is accepted.
    """

    event: Mapping[str, Any] | None = None
    publisher: BasePublisher | None = None
    payload: JsonText | None = None
    metadata: JsonText | None = None
    withheld: str | None = None
    took_ms: float = 0.0
    """Time it took to make the event, in milliseconds."""

    def stored(self, delivery_mode: str) -> dict[str, Any] | None:
        """Return the arguments for `tasker.write_events`, or None if the event follows from the result alone."""
        if self.withheld is not None or self.event is None:
            return {"w": self.withheld or "no task was created from it"}
        if delivery_mode == "durable" and self.payload is None and self.publisher is None:
            return None
        said = {"p": self.payload, "m": self.metadata, "by": self.event["metadata"]["fired_by"]}
        return {"id": self.event["event_id"], **{name: value for name, value in said.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class ResultEvents:
    """Events of one result: `stored` by their numbers, `here` those to publish in this process.

    Events that the handler published itself are numbered after those that its step declares.
    """

    stored: Mapping[str, Any] = field(default_factory=dict)
    here: tuple[tuple[str, AnnouncedEvents], ...] = ()
    """Pairs of delivery mode and event, in the order of their numbers."""

    def and_published(
        self, announced: AnnouncedEvents, number: int, event: HandlerEvent, *, told: bool
    ) -> ResultEvents:
        """Return these events and one that the handler published itself; `told` adds it to `here`.

        The engine gets each with its condition, because only the engine knows which outcome is accepted.
        """
        said = {"n": event.name, "d": event.delivery_mode, "c": event.condition}
        stored = {} if event.delivery_mode == "fast" else {str(number): {**(announced.stored("durable") or {}), **said}}
        here = ((event.delivery_mode, announced),) if told and announced.event is not None else ()
        return ResultEvents({**self.stored, **stored}, (*self.here, *here))

    def and_(self, announced: AnnouncedEvents, number: int, delivery_mode: str) -> ResultEvents:
        """Return these events and one more."""
        stored = None if delivery_mode == "fast" else announced.stored(delivery_mode)
        told = announced.event is not None
        return ResultEvents(
            self.stored if stored is None else {**self.stored, str(number): stored},
            (*self.here, (delivery_mode, announced)) if told else self.here,
        )
