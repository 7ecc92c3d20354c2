"""Reading in the name of a subscriber: at least once, in order, by one reader at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from tasker.contracts.backoff import BackoffPolicy
from tasker.errors import TaskerError
from tasker.services.domain_events.values import EventPage, PublishedEvent
from tasker.services.domain_events.window import InFlightWindow

LOOKS = BackoffPolicy(0.1, 1.0)
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
        async with self._reading() as begin, aclosing(self._from(begin)) as found, asyncio.TaskGroup() as calls:
            window = InFlightWindow(begin, ahead, self._acknowledge)
            async for position, event in found:
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
        beat = asyncio.ensure_future(self._keep())
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
        looks, known = 0, position
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
            looks = 0 if page.events else looks + 1
            if not page.events:
                self._require(kept=True)  # an idle reader must notice its replacement too
                await asyncio.sleep(LOOKS.pause(looks))

    async def _acknowledge(self, position: int) -> None:
        answer = await self._call("acknowledge", {**self._args, "position": position, "leave": False})
        self._require(answer["kept"])

    def _require(self, kept: bool) -> None:
        if self._lost or not kept:
            raise SubscriptionLost(
                f"another process reads as subscriber {self._args['name']!r} by now, or a replay was requested",
                hint="start the iteration again: unacknowledged events are delivered again",
            )

    async def _keep(self) -> None:
        """Renew the lease while an event is handled."""
        while not self._lost:
            await asyncio.sleep(self._args["lease_ms"] / 3000)
            with suppress(TaskerError):
                answer = await self._call("acknowledge", {**self._args, "position": 0, "leave": False})
                self._lost = not answer["kept"]
