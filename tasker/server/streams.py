"""Answers that continue: server-sent events, and waiting for the end of a task."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import Annotated, TypeVar

from fastapi import Query, Request

from tasker.errors import UsageError
from tasker.server.envelope import allow_seconds
from tasker.server.program import ServerServices

T = TypeVar("T")
_log = logging.getLogger("tasker.api")


class Streams:
    """Open streams of a process, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit, self._open = limit, 0
        self._closing = asyncio.Event()
        self._ending: set[asyncio.Future[None]] = set()

    def enter(self) -> bool:
        """Reserve one stream until `leave`; return False if none is free."""
        if self._open >= self._limit or self._closing.is_set():
            return False
        self._open += 1
        return True

    def leave(self) -> None:
        """Release the reservation of one stream."""
        self._open -= 1

    def close(self) -> None:
        """End all streams, each after the item that it is sending."""
        self._closing.set()

    async def wait(self, awaited: Awaitable[object]) -> None:
        """Return when `awaited` is done or all streams are closed; an error of `awaited` is raised."""
        waiting, closing = asyncio.ensure_future(awaited), asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait([waiting, closing], return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            closing.cancel()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def through(self, items: AsyncGenerator[T]) -> AsyncIterator[T]:
        """Yield the items of one stream until it ends or all streams are closed."""
        closing = asyncio.ensure_future(self._closing.wait())
        item: asyncio.Future[T] | None = None
        try:
            while not closing.done():
                item = asyncio.ensure_future(anext(items))
                await asyncio.wait([item, closing], return_when=asyncio.FIRST_COMPLETED)
                if not item.done():
                    return
                try:
                    yield item.result()
                except StopAsyncIteration:
                    return
        finally:
            closing.cancel()
            await self._close_later(items, item)

    async def _close_later(self, items: AsyncGenerator[T], item: asyncio.Future[T] | None) -> None:
        """End the generator of the items in a task of its own.

        The task that answers a disconnected client is cancelled again at every turn of the loop and would pass that on:
        a statement that is cancelled again while it is being cancelled costs its connection.
        """
        ending = asyncio.ensure_future(_ended(items, item))
        self._ending.add(ending)
        ending.add_done_callback(self._ending_is_over)
        await asyncio.shield(ending)

    def _ending_is_over(self, ending: asyncio.Future[None]) -> None:
        self._ending.discard(ending)
        if not ending.cancelled() and (error := ending.exception()):
            _log.debug("stream_ended_with_error: %s", error)


async def _ended(items: AsyncGenerator[T], item: asyncio.Future[T] | None) -> None:
    if item is not None:
        item.cancel()
        (outcome,) = await asyncio.gather(item, return_exceptions=True)
        if isinstance(outcome, Exception) and not isinstance(outcome, StopAsyncIteration):
            _log.debug("stream_ended_with_error: %s", outcome)  # no client is left to read it
    await items.aclose()


MOST_SECONDS = 300.0
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}
WRITTEN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|)")
Wait = Annotated[
    str | None,
    Query(
        description="Answer when the task has ended, at the latest after so long: `10s`, `500ms`, `2m`; at most `5m`.",
        examples=["10s"],
        max_length=20,
    ),
]


def seconds_of(text: str | None) -> float | None:
    """Return the time in seconds, or None without one. Raises `UsageError` if it is invalid or too long."""
    if text is None:
        return None
    match = WRITTEN.fullmatch(text)
    seconds = float(match[1]) * UNITS[match[2]] if match else -1.0
    if 0 <= seconds <= MOST_SECONDS:
        return seconds
    raise UsageError(f"wait={text!r} is not a valid wait time", hint="for example 10s, 500ms or 2m; at most 5m")


async def wait_for_end(request: Request, program: ServerServices, task_uuid: str, seconds: float | None) -> None:
    """Return when the task has ended, the time is over, or the server stops. Raises `TaskNotFound`."""
    if not seconds:
        return
    allow_seconds(request.scope, seconds)
    try:
        streams: Streams = request.app.state.streams
        await streams.wait(program.finished(task_uuid, timeout=seconds))
    except TimeoutError:
        return
