"""Values and tables as text."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

from tasker.services.wording import SYMBOLS as SYMBOLS
from tasker.services.wording import URGENCY as URGENCY
from tasker.services.wording import countdown as countdown
from tasker.services.wording import counted as counted
from tasker.services.wording import duration as duration
from tasker.services.wording import number as number
from tasker.services.wording import one_line as one_line

if TYPE_CHECKING:
    from tasker.views.progress import ReportedProgress

RESULT_LINES = 40

COLOURS = {
    "enqueued": "bright_blue",
    "in_progress": "cyan",
    "enqueued_for_orchestration": "cyan",
    "enqueued_as_error_for_orchestration": "yellow",
    "waiting_for_retry": "yellow",
    "waiting_for_dependencies": "yellow",
    "blocked_by_failures": "red",
    "complete": "green",
    "error": "red",
    "cancelled": "magenta",
    "resolved_manually": "green",
}


def reported_text(report: ReportedProgress | None, *, ago_seconds: float = 0.0) -> str:
    """Render the progress that a handler reported: percentage, counts, remaining time, message."""
    if report is None:
        return ""
    of = "" if report.total is None else f" of {number(report.total)}"
    parts = [
        "" if report.percent is None else f"{report.percent:.0f} %",
        "" if report.done is None else f"{number(report.done)}{of}",
        ""
        if report.eta_seconds is None
        else f"about {duration(1000 * max(0.0, report.eta_seconds - ago_seconds))} left",
        one_line(report.message) if report.message else "",
    ]
    return ", ".join(filter(None, parts))


def state_text(state: str) -> str:
    """Render a state of a task or step with its colour and symbol."""
    return click.style(f"{SYMBOLS.get(state, '▶')} {state}", fg=COLOURS.get(state))


def unserved_text(handler: str, namespace: str | None = None) -> str:
    """Return the reason why a step without a live worker for its handler waits."""
    return f"no live worker has handler {handler}" + (f" (namespace {namespace})" if namespace else "")


def held_by_pause(pause: Mapping[str, Any]) -> str:
    """Render the pause that stops a step: target, time, actor and reason."""
    kind, name = _paused_thing(pause)
    target = f"{kind} {name}" if kind in ("task", "queue") else name
    reason = f": {one_line(pause['reason'])}" if pause["reason"] else ""
    return f"{target} is paused since {date_time(pause['paused_at'])} by {pause['actor']}{reason}"


def end_of_pause(pause: Mapping[str, Any]) -> str:
    """Return the command that ends a pause."""
    kind, name = _paused_thing(pause)
    return f"tasker resume {name}" if kind == "namespace" else f"tasker resume --{kind} {name}"


def _paused_thing(pause: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of the pause's target, and its name as the command takes it."""
    kind = next(candidate for candidate in ("queue", "task", "step", "template", "namespace") if pause.get(candidate))
    if kind in ("queue", "task"):
        return kind, str(pause[kind])
    return kind, "/".join(filter(None, (pause["namespace"], pause["template"], pause["step"])))


def echo(text: str = "", *, to: TextIO | None = None) -> None:
    """Print to standard output or to `to`; without colours if it is not a terminal or NO_COLOR is set."""
    click.echo(text, file=to, color=False if os.environ.get("NO_COLOR") else None)


def attempt_text(state: str, attempts: int, limit: int) -> str:
    """Return `attempt 2/3`, or '' for a step whose first attempt has not failed."""
    return (
        f"attempt {attempts}/{limit}" if attempts > 1 or (attempts and state in ("waiting_for_retry", "error")) else ""
    )


def clock_time(moment: datetime | str | None) -> str:
    """Render the time of day in the user's time zone, with milliseconds."""
    if moment is None:
        return ""
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return moment.astimezone().strftime("%H:%M:%S.%f")[:-3]


def date_time(moment: datetime | str | None) -> str:
    """Render date and time in the user's time zone, to the second."""
    if moment is None:
        return ""
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def pretty_json(value: Any, *, indent: int = 0, lines: int | None = RESULT_LINES) -> str:
    """Render JSON on one line if it fits the screen, else indented; lines beyond `lines` are only counted."""
    margin = " " * indent
    short = json.dumps(value, ensure_ascii=False)
    if len(short) + indent <= min(shutil.get_terminal_size().columns, 120):
        return margin + short
    all_lines = json.dumps(value, ensure_ascii=False, indent=2).splitlines()
    visible = all_lines[:lines]
    if len(all_lines) > len(visible):
        visible.append(f"... {len(all_lines) - len(visible)} more lines")
    return "\n".join(margin + line for line in visible)


def wrapped(text: str, indent: int, width: int | None) -> str:
    """Return the text indented and wrapped at `width` columns; None does not wrap."""
    margin = " " * indent
    if width is None:
        return margin + text
    return "\n".join(
        textwrap.fill(line, width, initial_indent=margin, subsequent_indent=margin)
        for line in text.splitlines() or [""]
    )


def middle_cut(text: str, width: int) -> str:
    """Shorten the text to `width` characters by cutting its middle, because names often differ at their end."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def screen_width() -> int | None:
    """Return the width of standard output, or None if it is not a terminal and nothing needs to be shortened."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def names_text(names: Sequence[str], limit: int = 10) -> str:
    """Join the names; beyond `limit` the others are only counted."""
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{rest}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render rows below their headings, two spaces between columns.

    The last cell of a shorter row is a note, which may span the columns that follow.
    """
    columns = range(len(headings))
    aligned = [headings, *(row if len(row) == len(headings) else row[:-1] for row in rows)]
    widths = [max(_width(row[column]) for row in aligned if column < len(row)) for column in columns]
    lines = [click.style(_line(headings, widths), bold=True), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=False)]
    return "  ".join(padded).rstrip()


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
