"""Events that a subscriber could not deal with: tried again later, or left to a person; and stopped subscribers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.services.by_hand import audited
from tasker.services.domain_events.values import PublishedEvent
from tasker.services.engine.encoding import to_json


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event that was put aside. `due_at`: when it is tried again; None: it was given up."""

    subscriber: str
    event_id: str
    event_name: str
    attempts: int
    due_at: datetime | None
    error: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """Events to try again, each with its attempts so far; and in how many seconds there is one, None: none waits."""

    events: Sequence[tuple[PublishedEvent, int]]
    next_seconds: float | None


class EventDeliveries:
    """What becomes of events that went wrong. All methods raise `DatabaseError`.

    `holder` is who holds the subscriber's lease, as given to `DomainEvents.subscribe`; nobody else changes anything.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def put_aside(
        self, name: str, holder: str, event: PublishedEvent, error: str, retry_seconds: float | None
    ) -> bool:
        """Try the event again after so long; None: give it up. False where the lease is lost: then it comes again."""
        retry_ms = None if retry_seconds is None else round(retry_seconds * 1000)
        args = {"name": name, "holder": holder, "event": asdict(event), "error": error[:2000], "retry_ms": retry_ms}
        return bool((await self._call("put_aside", args))["kept"])

    async def due(self, name: str, holder: str, limit: int) -> DueDelivery:
        """What is to be tried again now, the longest due first."""
        answer = await self._call("due_deliveries", {"name": name, "holder": holder, "limit": limit})
        found = [(PublishedEvent(**row["event"]), row["attempts"]) for row in answer["deliveries"]]
        return DueDelivery(found, None if answer["next_ms"] is None else answer["next_ms"] / 1000)

    async def settle(self, name: str, holder: str, event_id: str) -> bool:
        """The event was dealt with after all. False where the lease is lost: then it comes again."""
        return bool(
            (await self._call("settle_delivery", {"name": name, "holder": holder, "event_id": event_id}))["kept"]
        )

    async def list(
        self, name: str | None = None, *, given_up: bool | None = None, limit: int = 50
    ) -> Sequence[Delivery]:
        """Those of a subscriber, or of all: the last tried first. `given_up` leaves out the others."""
        answer = await self._call("event_deliveries", {"name": name, "given_up": given_up, "limit": limit})
        return [_delivery(row) for row in answer["deliveries"]]

    @audited("App.domain_events.deliveries.retry", "_connection")
    async def retry(self, name: str, events: Sequence[str] | None = None) -> int:
        """Try these again now, from the first attempt on; None: all that were given up. How many there are."""
        args = {"name": name, "events": None if events is None else list(events)}
        return int((await self._call("redeliver", args))["events"])

    @audited("App.domain_events.deliveries.stop", "_connection")
    async def stop(self, name: str, *, by: str, reason: str) -> bool:
        """Let nobody read in this subscriber's name; events wait. False where it was stopped already."""
        return await self._set_stopped(name, {"by": by, "reason": reason})

    @audited("App.domain_events.deliveries.resume", "_connection")
    async def resume(self, name: str, *, by: str) -> bool:
        """Let it be read in its name again. False where it was not stopped."""
        return await self._set_stopped(name, None)

    async def _set_stopped(self, name: str, stopped: Mapping[str, str] | None) -> bool:
        return bool((await self._call("stop_subscriber", {"name": name, "stopped": stopped}))["changed"])

    async def _call(self, function: str, args: Mapping[str, Any]) -> dict[str, Any]:
        return await self._connection.call(f"tasker.{function}_v1(%s::jsonb)", to_json(args))


def _delivery(row: Mapping[str, Any]) -> Delivery:
    due = row["due_at"] and datetime.fromisoformat(row["due_at"])
    return Delivery(**{**row, "due_at": due, "updated_at": datetime.fromisoformat(row["updated_at"])})
