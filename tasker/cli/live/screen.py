"""Live view on a terminal: the tree, redrawn in place, and a summary line."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tasker.cli.live.tree import ABSENT, LiveRow, Tree
from tasker.cli.render.values import COLOURS, end_of_pause, held_by_pause
from tasker.logging.step_log import capture_prints
from tasker.services.wording import SYMBOLS, duration
from tasker.views.progress import StepProgress

if TYPE_CHECKING:
    from tasker.cli.live.feed import Feed
    from tasker.template.plan import Plan

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TROUBLED = ("error", "waiting_for_retry")
GAP = 2
MIN_NAME = 12
NOTE_KEPT = 14
"""Minimum number of columns for notes; long names are shortened to leave them."""

OTHER_LINES = 3
"""Lines of the screen that the tree must leave free."""


class Screen:
    """View that draws the tree on the terminal `stream`, with the `advice` below it.

    Output of handlers appears above the tree.
    """

    interval = 0.1

    def __init__(self, stream: TextIO, plan: Plan, advice: str) -> None:
        self._console = Console(file=stream, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._tree = Tree(plan)
        self._picture = Group()
        self._counts = "starting"
        self._advice = advice

    def show(self, feed: Feed, changed: Sequence[StepProgress]) -> None:
        """Redraw the tree."""
        assert feed.task is not None
        finished = feed.task.finished
        # The last tree stays and may scroll; a redrawn one must fit the screen.
        pauses = pause_lines(feed.task.pauses)
        height = 10_000 if finished else max(3, self._console.height - OTHER_LINES - len(pauses))
        rows = self._tree.rows(feed.steps, feed.now(), finished=finished, height=height, why=feed.why)
        if finished:
            self._live.vertical_overflow = "visible"
        self._picture = Group(picture(rows, self._console.width, spare=height - len(rows)), *pauses)
        self._counts = f"{feed.task.done}/{feed.task.total} steps · {feed.task.status}{_elapsed(feed)}"
        self._draw()

    def say(self, text: str) -> None:
        """Show the text below the tree from now on."""
        self._advice = text
        self._draw()

    def close(self) -> None:
        """Leave the last tree on the screen and restore the cursor."""
        self._live.update(self._picture, refresh=self._live.is_started)
        self._live.stop()

    def _draw(self) -> None:
        text = f"{self._counts} · {self._advice}"
        self._live.start()
        capture_prints()  # rich has replaced standard output
        self._live.update(Group(self._picture, Text(text, "dim", no_wrap=True, overflow="ellipsis")), refresh=True)


def _elapsed(feed: Feed) -> str:
    """Return the time since the first step started; '' after the end, when the duration is shown elsewhere."""
    begun = [step.started_at for step in feed.steps.values() if step.started_at]
    if not begun or (feed.task is not None and feed.task.finished):
        return ""
    return f" · {duration(max(0.0, (feed.now() - min(begun)).total_seconds() * 1000))}"


def pause_lines(pauses: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Return two lines for each pause: the pause, and how to end it."""
    texts = [text for pause in pauses for text in (held_by_pause(pause), f"  to resume: {end_of_pause(pause)}")]
    return [Text(text, "yellow", no_wrap=True, overflow="ellipsis") for text in texts]


def picture(rows: Sequence[LiveRow], width: int, spare: int = 0) -> Group:
    """Lay out the rows in aligned columns. If space is short the note is cut first, then the names.

    The reason why a step failed or waits is not cut: it gets its own line, as long as `spare` lines are left.
    """
    states = [_state(row) for row in rows]
    attempt, time_ = (max(len(getattr(row, column)) for row in rows) for column in ("attempt", "time"))
    state = max(text.cell_len for text in states)
    others = state + attempt + time_ + 3 * GAP
    # A row without a state is only a note and may span the other columns.
    widest = max((_name(row).cell_len for row in rows if row.state), default=0)
    note = min(NOTE_KEPT, max((cell_len(row.note) + GAP for row in rows if row.note), default=0))
    name = max(MIN_NAME, min(widest, width - others - note))
    lines = []
    for row, text in zip(rows, states, strict=True):
        line = _cell(_name(row), name) if row.state else _name(row)
        if row.state:
            cells = [_cell(text, state), Text(row.attempt.rjust(attempt)), Text(row.time.rjust(time_))]
            below = (
                (row.explained or row.state in TROUBLED)
                and name + others + GAP + cell_len(row.note) > width
                and spare > 0
            )
            line = Text(" " * GAP).join([line, *cells, Text("" if below else row.note, style="dim")])
            lines.append(_cut(line, width))
            if below:
                note_lines = _below(row, width, spare if row.explained else 1)
                spare -= len(note_lines)
                lines += note_lines
        else:
            lines.append(_cut(line, width))
    return Group(*lines)


def _below(row: LiveRow, width: int, most: int) -> list[Text]:
    """Return the note of a row on at most `most` lines of its own."""
    margin = " " * (cell_len(row.prefix) + GAP)
    first, *rest = textwrap.wrap(row.note, max(NOTE_KEPT, width - len(margin))) if most > 1 else [row.note]
    lines = [first, *rest[: most - 2], " ".join(rest[most - 2 :])] if len(rest) >= most else [first, *rest]
    return [_cut(Text(margin + line), width) for line in lines]


def _cut(line: Text, width: int) -> Text:
    line.rstrip()
    line.truncate(width, overflow="ellipsis")
    return line


def _cell(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis", pad=True)
    return text


def _name(row: LiveRow) -> Text:
    style = "dim" if row.state in (ABSENT, "pending", "") else "bold" if row.state == "in_progress" else ""
    return Text.assemble((row.prefix, "dim"), (row.name, style))


def _state(row: LiveRow) -> Text:
    if row.state in (ABSENT, ""):
        return Text("")
    running = row.state == "in_progress"
    symbol = SPINNER[int(time.monotonic() * 10) % len(SPINNER)] if running else SYMBOLS[row.state]
    return Text(f"{symbol} {row.state}", style=COLOURS.get(row.state, "dim"))
