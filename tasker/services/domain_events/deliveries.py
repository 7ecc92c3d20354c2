"""Event deliveries that failed: retried later, or given up for inspection; and stopped subscribers."""

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

LONGEST_ERROR = 2000
"""Maximum length of a stored error in characters."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Failed delivery of an event. `due_at` is the time of the next attempt; None if it was given up."""

    subscriber: str
    event_id: str
    event_name: str
    attempts: int
    due_at: datetime | None
    error: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """Deliveries to retry now, each with its attempts so far.

    `next_seconds` is the time until the next one is due; None if none waits.
    """

    events: Sequence[tuple[PublishedEvent, int]]
    next_seconds: float | None


class EventDeliveries:
    """Failed deliveries of events. All methods raise `DatabaseError`.

    `holder` is the holder of the subscriber's lease, as given to `DomainEventLog.subscribe`; only the holder can record
    failures and settle deliveries.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def put_aside(
        self, name: str, holder: str, event: PublishedEvent, error: str, retry_seconds: float | None
    ) -> bool:
        """Schedule a retry of the event after `retry_seconds`; None gives it up.

        Return False if the lease is lost: then the event is delivered again.
        """
        retry_ms = None if retry_seconds is None else round(retry_seconds * 1000)
        args = {"name": name, "holder": holder, "event": asdict(event), "error": _storable(error), "retry_ms": retry_ms}
        return bool((await self._call("quarantine_event", args))["kept"])

    async def due(self, name: str, holder: str, limit: int) -> DueDelivery:
        """Return the deliveries due now, the longest overdue first."""
        answer = await self._call("due_deliveries", {"name": name, "holder": holder, "limit": limit})
        found = [(PublishedEvent(**row["event"]), row["attempts"]) for row in answer["deliveries"]]
        return DueDelivery(found, None if answer["next_ms"] is None else answer["next_ms"] / 1000)

    async def settle(self, name: str, holder: str, event_id: str) -> bool:
        """Record that a retried event was handled. Return False if the lease is lost: then it is delivered again."""
        return bool(
            (await self._call("finish_delivery", {"name": name, "holder": holder, "event_id": event_id}))["kept"]
        )

    async def list(
        self, name: str | None = None, *, given_up: bool | None = None, limit: int = 50
    ) -> Sequence[Delivery]:
        """Return the failed deliveries of a subscriber, or of all, the last tried first.

        `given_up` True returns only those given up, False only those to be retried.
        """
        answer = await self._call("event_deliveries", {"name": name, "given_up": given_up, "limit": limit})
        return [_delivery(row) for row in answer["deliveries"]]

    @audited("App.domain_events.deliveries.retry", "_connection")
    async def retry(self, name: str, events: Sequence[str] | None = None) -> int:
        """Retry these events now, with attempts counted from the start; None: all that were given up. Return their
        number."""
        args = {"name": name, "events": None if events is None else list(events)}
        return int((await self._call("redeliver", args))["events"])

    @audited("App.domain_events.deliveries.stop", "_connection")
    async def stop(self, name: str, *, by: str, reason: str) -> bool:
        """Stop a subscriber: no process can read in its name, and events wait. Return False if it was already
        stopped."""
        return await self._set_stopped(name, {"by": by, "reason": reason})

    @audited("App.domain_events.deliveries.resume", "_connection")
    async def resume(self, name: str, *, by: str) -> bool:
        """Resume a stopped subscriber. Return False if it was not stopped."""
        return await self._set_stopped(name, None)

    async def _set_stopped(self, name: str, stopped: Mapping[str, str] | None) -> bool:
        return bool((await self._call("stop_subscriber", {"name": name, "stopped": stopped}))["changed"])

    async def _call(self, function: str, args: Mapping[str, Any]) -> dict[str, Any]:
        return await self._connection.call(f"tasker.{function}_v1(%s::jsonb)", to_json(args))


def _storable(error: str) -> str:
    """Return the start of the text without NUL and lone surrogates, which PostgreSQL refuses."""
    return error.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")[:LONGEST_ERROR]


def _delivery(row: Mapping[str, Any]) -> Delivery:
    due = row["due_at"] and datetime.fromisoformat(row["due_at"])
    return Delivery(**{**row, "due_at": due, "updated_at": datetime.fromisoformat(row["updated_at"])})
