"""Live display of a running task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from tasker.cli.live.feed import Feed
from tasker.services.progress import StepProgress

if TYPE_CHECKING:
    from tasker.contracts.plan import Plan

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
    from tasker.cli.live.plain import TextView
    from tasker.cli.render.values import echo

    return TextView(lambda text: echo(text, to=stream))
