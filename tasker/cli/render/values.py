"""Values as people read them: durations, times, JSON, states with their colours."""

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
    from tasker.services.progress import ReportedProgress

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
    """How far a handler says that it is: a percentage, numbers, what is left, its words."""
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
    """A state of a task or step in its colour, with its symbol."""
    return click.style(f"{SYMBOLS.get(state, '▶')} {state}", fg=COLOURS.get(state))


def nobody_serves(handler: str, namespace: str | None = None) -> str:
    """Why a step waits that no live worker takes."""
    return f"nobody serves {handler}" + (f" (namespace {namespace})" if namespace else "")


def held_by_pause(pause: Mapping[str, Any]) -> str:
    """Which pause holds a step back, since when, by whom and why."""
    kind, name = _paused_thing(pause)
    target = f"{kind} {name}" if kind in ("task", "queue") else name
    reason = f": {one_line(pause['reason'])}" if pause["reason"] else ""
    return f"held by the pause of {target} since {date_time(pause['paused_at'])} by {pause['actor']}{reason}"


def end_of_pause(pause: Mapping[str, Any]) -> str:
    """The command that ends a pause."""
    kind, name = _paused_thing(pause)
    return f"tasker resume {name}" if kind == "namespace" else f"tasker resume --{kind} {name}"


def _paused_thing(pause: Mapping[str, Any]) -> tuple[str, str]:
    """What is paused: its kind, and its name as the command takes it."""
    kind = next(each for each in ("queue", "task", "step", "template", "namespace") if pause.get(each))
    if kind in ("queue", "task"):
        return kind, str(pause[kind])
    return kind, "/".join(filter(None, (pause["namespace"], pause["template"], pause["step"])))


def echo(text: str = "", *, to: TextIO | None = None) -> None:
    """Print, on standard output unless told otherwise; without colours where nobody sees them or NO_COLOR is set."""
    click.echo(text, file=to, color=False if os.environ.get("NO_COLOR") else None)


def attempt_text(state: str, attempts: int, limit: int) -> str:
    """`attempt 2/3` of a step for which there is more to say than that its first attempt did it."""
    return (
        f"attempt {attempts}/{limit}" if attempts > 1 or (attempts and state in ("waiting_for_retry", "error")) else ""
    )


def clock_time(moment: datetime | str | None) -> str:
    """The time of day in the user's zone, with milliseconds."""
    if moment is None:
        return ""
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return moment.astimezone().strftime("%H:%M:%S.%f")[:-3]


def date_time(moment: datetime | str | None) -> str:
    """Date and time in the user's zone, to the second."""
    if moment is None:
        return ""
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def pretty_json(value: Any, *, indent: int = 0, lines: int | None = RESULT_LINES) -> str:
    """JSON on one line where it fits the screen, else indented; beyond `lines` lines it says how many are left out."""
    margin = " " * indent
    short = json.dumps(value, ensure_ascii=False)
    if len(short) + indent <= min(shutil.get_terminal_size().columns, 120):
        return margin + short
    all_lines = json.dumps(value, ensure_ascii=False, indent=2).splitlines()
    shown = all_lines[:lines]
    if len(all_lines) > len(shown):
        shown.append(f"... {len(all_lines) - len(shown)} more lines")
    return "\n".join(margin + line for line in shown)


def wrapped(text: str, indent: int, width: int | None) -> str:
    """The text indented, its lines broken between words at `width` columns; None breaks none."""
    margin = " " * indent
    if width is None:
        return margin + text
    return "\n".join(
        textwrap.fill(line, width, initial_indent=margin, subsequent_indent=margin)
        for line in text.splitlines() or [""]
    )


def middle_cut(text: str, width: int) -> str:
    """The text, or its beginning and its end in `width` characters: names often differ at their end."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def screen_width() -> int | None:
    """How many columns standard output has; None where it is no terminal and nothing needs to be shortened."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def names_text(names: Sequence[str], limit: int = 10) -> str:
    """The names, or the first of them and how many more."""
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{rest}"
