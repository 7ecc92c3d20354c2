"""Outputs of child tasks as handlers read them: in pages, so that no handler holds those of 10,000 children."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.handlers.calls import HandlerCalls

PAGE = 500
"""Children of one page; a page ends earlier at `PAGE_BYTES`."""
PAGE_BYTES = 4_194_304


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

    def __init__(self, step: str, calls: HandlerCalls | None) -> None:
        self._step, self._calls = step, calls

    def __iter__(self) -> Iterator[Child]:
        calls, after = self._lent(), None
        while True:
            page = calls.call("children_page", self._page(after))
            yield from _children(page)
            if not page.get("more"):
                return
            after = page["children"][-1]["index"]

    async def __aiter__(self) -> AsyncIterator[Child]:
        calls, after = self._lent(), None
        while True:
            page = await calls.acall("children_page", self._page(after))
            for child in _children(page):
                yield child
            if not page.get("more"):
                return
            after = page["children"][-1]["index"]

    def _lent(self) -> HandlerCalls:
        if self._calls is None:
            raise UsageError(
                f"the children of {self._step!r} cannot be read here: no worker runs the handler",
                hint="in a test pass step_context(children=...)",
            )
        return self._calls

    def _page(self, after: int | None) -> Mapping[str, Any]:
        return {"step": self._step, "after": after, "limit": PAGE, "max_bytes": PAGE_BYTES}


def _children(page: Mapping[str, Any]) -> Iterator[Child]:
    for row in page.get("children", ()):
        yield Child(row["index"], row["task_uuid"], row["state"], row["output"], row["error"])
