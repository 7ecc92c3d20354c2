"""Outputs of child tasks as handlers read them: in pages, so that no handler holds those of 10,000 children."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import UsageError

PAGE = 500
"""Children of one page; a page ends earlier at `PAGE_BYTES`."""
PAGE_BYTES = 4_194_304
ReadPage = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
handler_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("tasker_handler_loop", default=None)
"""Event loop of the worker, for handlers in its threads."""


@dataclass(frozen=True, slots=True)
class Child:
    """Child task of a step. `state`: waits, runs, succeeded or failed."""

    index: int
    """Position in the list of `for_each`; 0 for a step with one child."""
    task_uuid: str | None
    """None: it was not started."""
    state: str
    output: Any = None
    error: Mapping[str, Any] | None = None


class Children:
    """Child tasks of a step above, in the order of its list: `for` in a thread, `async for` in an async handler."""

    def __init__(self, step: str, read: ReadPage | None) -> None:
        self._step, self._read = step, read

    def __iter__(self) -> Iterator[Child]:
        loop = handler_loop.get()
        if loop is None:
            raise UsageError(
                f"the children of {self._step!r} cannot be read with `for` here",
                hint="write `async for` in an async handler; handlers in child processes cannot read them",
            )
        after: int | None = None
        while True:
            page = asyncio.run_coroutine_threadsafe(self._page(after), loop).result()
            yield from _children(page)
            if not page.get("more"):
                return
            after = page["children"][-1]["index"]

    async def __aiter__(self) -> AsyncIterator[Child]:
        after: int | None = None
        while True:
            page = await self._page_on(handler_loop.get(), after)
            for child in _children(page):
                yield child
            if not page.get("more"):
                return
            after = page["children"][-1]["index"]

    async def _page_on(self, loop: asyncio.AbstractEventLoop | None, after: int | None) -> Mapping[str, Any]:
        """Return a page; an async handler in a thread has a loop without the worker's connection."""
        if loop is None or loop is asyncio.get_running_loop():
            return await self._page(after)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._page(after), loop))

    async def _page(self, after: int | None) -> Mapping[str, Any]:
        if self._read is None:
            raise UsageError(
                f"the children of {self._step!r} cannot be read here",
                hint="handlers in child processes cannot: write `execution: thread`",
            )
        return await self._read({"step": self._step, "after": after, "limit": PAGE, "max_bytes": PAGE_BYTES})


def _children(page: Mapping[str, Any]) -> Iterator[Child]:
    for row in page.get("children", ()):
        yield Child(row["index"], row["task_uuid"], row["state"], row["output"], row["error"])
