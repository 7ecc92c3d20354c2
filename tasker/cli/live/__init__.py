"""Watching a task while it runs."""

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
    """Shows a task's progress; `interval` is the pause in seconds between two looks."""

    interval: float

    def show(self, feed: Feed, changed: Sequence[StepProgress]) -> None:
        """Show what the feed knows; `changed` are the steps that changed since the last look."""
        ...

    def say(self, text: str) -> None:
        """Tell the user something while the task runs."""
        ...

    def close(self) -> None:
        """Leave the screen as it is."""
        ...


def view_on(stream: TextIO, plan: Plan, advice: str = "Ctrl-C stops, the task can be resumed") -> View:
    """A tree that moves on a terminal, with the advice below it; lines of text anywhere else."""
    if stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from tasker.cli.live.screen import Screen

        return Screen(stream, plan, advice)
    from tasker.cli.live.plain import TextView
    from tasker.cli.render.values import echo

    return TextView(lambda text: echo(text, to=stream))
