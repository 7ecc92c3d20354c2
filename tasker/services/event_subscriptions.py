"""Subscriptions that read every domain event at least once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any

from tasker.clock import BackoffPolicy
from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.errors import TaskerError
from tasker.json_values import to_json
from tasker.services.audit import audited
from tasker.views.events import EventPage, PublishedEvent

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
        deliveries = [(PublishedEvent(**row["event"]), row["attempts"]) for row in answer["deliveries"]]
        return DueDelivery(deliveries, None if answer["next_ms"] is None else answer["next_ms"] / 1000)

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
    async def retry(self, name: str, events: Sequence[str] | None = None, *, actor: str | None = None) -> int:
        """Retry these events now, with attempts counted from the start; None: all that were given up. Return their
        number."""
        args = {"name": name, "events": None if events is None else list(events)}
        return int((await self._call("redeliver", args))["events"])

    @audited("App.domain_events.deliveries.stop", "_connection")
    async def stop(self, name: str, *, actor: str, reason: str) -> bool:
        """Stop a subscriber: no process can read in its name, and events wait. Return False if it was already
        stopped."""
        return await self._set_stopped(name, {"by": actor, "reason": reason})

    @audited("App.domain_events.deliveries.resume", "_connection")
    async def resume(self, name: str, *, actor: str) -> bool:
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


class InFlightWindow:
    """Positions from the oldest unhandled event on, open or closed: at most `ahead`.

    `settle` is called with a position up to which all events are handled: one call at a time, each further than the
    last.
    """

    def __init__(self, begin: int, ahead: int, settle: Callable[[int], Awaitable[None]]) -> None:
        self._room, self._settle, self._settling = asyncio.Semaphore(ahead), settle, asyncio.Lock()
        self._order, self._closed = deque[int](), set[int]()
        self._reached = self._settled = begin

    async def open(self, position: int) -> None:
        """Add a position, further than all before; waits while the window is full."""
        await self._room.acquire()
        self._order.append(position)

    async def close(self, position: int) -> None:
        """Mark a position as handled.

        Returns once it is settled or older ones are still open. Raises the errors of `settle`.
        """
        self._closed.add(position)
        while self._order and self._order[0] in self._closed:
            self._reached = self._order.popleft()
            self._closed.remove(self._reached)
            self._room.release()
        async with self._settling:
            if (reached := self._reached) > self._settled:
                await self._settle(reached)
                self._settled = reached


POLLS = BackoffPolicy(0.1, 1.0)
"""Seconds between two polls without events."""
Call = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class SubscriptionLost(TaskerError):
    """The subscriber's lease went to another reader, or the subscriber was rewound."""


class Subscription:
    """Events of a subscriber: `async for event in subscription`.

    An event is acknowledged when the next one is requested. If the loop ends before that (an error, `break`, a killed
    process), the event is delivered again. While another process reads in this name, this one waits, and takes over
    when that lease ends. Raises `SubscriptionLost` if the lease was lost meanwhile, for example because the process was
    suspended.
    """

    def __init__(
        self,
        call: Call,
        read: Callable[[int], Awaitable[EventPage]],
        args: Mapping[str, Any],
        begin: Mapping[str, Any],
        standby_seconds: float,
    ) -> None:
        self._call, self._read, self._args, self._begin = call, read, args, begin
        self._standby_seconds = standby_seconds
        self._lost = False

    def __aiter__(self) -> AsyncIterator[PublishedEvent]:
        """Iterate over the events, from where the subscriber stopped."""
        return self.events()

    async def events(self) -> AsyncGenerator[PublishedEvent]:
        """Yield the events as iteration does, for callers that close the generator themselves."""
        async with self._reading() as begin:
            async for position, event in self._from(begin):
                if event is not None:
                    yield event
                await self._acknowledge(position)

    async def deal(self, with_event: Callable[[PublishedEvent], Awaitable[object]], ahead: int) -> None:
        """Call `with_event` with each event in order, without waiting for the one before, until cancelled.

        An event is acknowledged when its call and all earlier ones have returned: after a crash at most `ahead` events
        that were handled are delivered again. Raises an `ExceptionGroup` of a call's error, or of `SubscriptionLost`;
        the other calls are cancelled then.
        """
        async with self._reading() as begin, aclosing(self._from(begin)) as events, asyncio.TaskGroup() as calls:
            window = InFlightWindow(begin, ahead, self._acknowledge)
            async for position, event in events:
                await window.open(position)
                if event is None:
                    await window.close(position)
                else:
                    calls.create_task(self._dealt(with_event, event, position, window))

    async def _dealt(
        self,
        with_event: Callable[[PublishedEvent], Awaitable[object]],
        event: PublishedEvent,
        position: int,
        window: InFlightWindow,
    ) -> None:
        await with_event(event)
        await window.close(position)

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[int]:
        """Acquire the lease and yield the start position. The lease is renewed meanwhile and released at the end."""
        begin = await self._joined()
        beat = asyncio.ensure_future(self._renew_lease())
        try:
            yield begin
        finally:
            beat.cancel()
            with suppress(asyncio.CancelledError, TaskerError):
                await beat
            with suppress(TaskerError):
                await self._call("acknowledge", {**self._args, "leave": True})

    async def _joined(self) -> int:
        while True:
            answer = await self._call("subscribe", {**self._args, **self._begin})
            if "position" in answer:
                return int(answer["position"])
            await asyncio.sleep(min(self._standby_seconds, answer["held"] / 1000))

    async def _from(self, position: int) -> AsyncGenerator[tuple[int, PublishedEvent | None]]:
        """Yield (position, event); without an event if everything up to the position was filtered out."""
        polls, known = 0, position
        while True:
            page = await self._read(position)
            if page.events:
                await self._acknowledge(0)  # a reader that was replaced or stopped must not handle later events
            for event in page.events:
                position = known = event.position or position
                yield position, event
            if page.last > known:
                known = page.last
                yield known, None
            position = page.last
            polls = 0 if page.events else polls + 1
            if not page.events:
                self._require(extended=True)  # an idle reader must notice its replacement too
                await asyncio.sleep(POLLS.pause(polls))

    async def _acknowledge(self, position: int) -> None:
        answer = await self._call("acknowledge", {**self._args, "position": position, "leave": False})
        self._require(answer["kept"])

    def _require(self, extended: bool) -> None:
        if self._lost or not extended:
            raise SubscriptionLost(
                f"another process reads as subscriber {self._args['name']!r} by now, or a replay was requested",
                hint="start the iteration again: unacknowledged events are delivered again",
            )

    async def _renew_lease(self) -> None:
        """Renew the lease while an event is handled."""
        while not self._lost:
            await asyncio.sleep(self._args["lease_ms"] / 3000)
            with suppress(TaskerError):
                answer = await self._call("acknowledge", {**self._args, "position": 0, "leave": False})
                self._lost = not answer["kept"]
