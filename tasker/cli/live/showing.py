"""Choice of the view for a task that is waited for, and the view itself while waiting."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from tasker.cli.live.feed import Feed
from tasker.errors import DatabaseError, RequestTimeout, ServerUnreachable
from tasker.views.progress import StepProgress

if TYPE_CHECKING:
    from tasker.template.plan import Plan
    from tasker.views.tasks import TaskReport

__all__ = ["Feed", "View", "view_on"]


class View(Protocol):
    """Display of a task's progress; `interval` is the poll interval in seconds."""

    interval: float

    def show(self, feed: Feed, changed: Sequence[StepProgress]) -> None:
        """Show the state of the feed; `changed` are the steps that changed since the last poll."""
        ...

    def say(self, text: str) -> None:
        """Print a message while the task runs."""
        ...

    def close(self) -> None:
        """Stop updating and leave the last output on the screen."""
        ...


def view_on(stream: TextIO, plan: Plan, advice: str = "Ctrl-C stops; the task can be resumed") -> View:
    """Return a live tree with the advice below it on a terminal, lines of text otherwise."""
    if stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from tasker.cli.live.screen import Screen

        return Screen(stream, plan, advice)
    from tasker.cli.live.text import TextView
    from tasker.cli.render.values import echo

    return TextView(lambda text: echo(text, to=stream))


AWAY = (DatabaseError, ServerUnreachable, RequestTimeout)
"""Errors that a view tolerates by polling again."""
EXPLAINING_SECONDS = 1.0
"""Minimum time between two queries for the reasons why steps wait."""
BUSY_SHARE = 10
"""Minimum ratio of pause to query time, so that watching does not slow down the database."""


@contextlib.asynccontextmanager
async def show_while_waiting(feed: Feed, view: View) -> AsyncIterator[None]:
    """Show the task during the block, and once more at its end."""
    showing = [asyncio.create_task(_show(feed, view)), asyncio.create_task(_explain(feed))]
    try:
        yield
    finally:
        for task in showing:
            task.cancel()
        await asyncio.gather(*showing, return_exceptions=True)
        with contextlib.suppress(*AWAY):  # the error that ended the wait is raised anyway
            view.show(feed, await feed.poll())
        view.close()


async def first_of(
    waiting: Coroutine[Any, Any, TaskReport], asked: asyncio.Event, timeout: float | None
) -> TaskReport | str:
    """Return the result of `waiting`, or `interrupted` or `timeout` if that happens first."""
    end = asyncio.create_task(waiting)
    interrupted = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait([end, interrupted], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            return await end
        return "interrupted" if interrupted.done() else "timeout"
    finally:
        for task in (end, interrupted):
            task.cancel()
        await asyncio.gather(end, interrupted, return_exceptions=True)


async def _show(feed: Feed, view: View) -> None:
    loop = asyncio.get_running_loop()
    silent = ""
    while True:
        began = loop.time()
        try:
            view.show(feed, await feed.poll())
            if silent:
                view.say(f"the {silent} responds again")
            silent = ""
        except AWAY as error:
            if not silent:
                view.say(no_answer(error))
            silent = _source(error)
        await asyncio.sleep(max(view.interval, (loop.time() - began) * BUSY_SHARE))


def no_answer(error: Exception) -> str:
    """Return the message that the database or server does not respond."""
    return f"the {_source(error)} does not respond; waiting for it"


def _source(error: Exception) -> str:
    return "database" if isinstance(error, DatabaseError) else "server"


async def _explain(feed: Feed) -> None:
    """Poll for the reasons in parallel with the view, which must not wait for them."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        with contextlib.suppress(*AWAY):  # the view reports that the server does not respond
            await feed.explain()
        await asyncio.sleep(max(EXPLAINING_SECONDS, (loop.time() - began) * BUSY_SHARE))
