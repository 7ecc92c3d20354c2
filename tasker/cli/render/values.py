"""Values as people read them: durations, times, JSON, states with their colours."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from tasker.services.progress import Reported

RESULT_LINES = 40

SYMBOLS = {
    "pending": "·",
    "enqueued": "○",
    "in_progress": "▶",
    "enqueued_for_orchestration": "…",
    "enqueued_as_error_for_orchestration": "…",
    "waiting_for_retry": "↻",
    "complete": "✔",
    "error": "✖",
    "cancelled": "⊘",
    "resolved_manually": "✔",
}
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
URGENCY = (
    "error",
    "waiting_for_retry",
    "in_progress",
    "enqueued_as_error_for_orchestration",
    "enqueued_for_orchestration",
    "enqueued",
    "cancelled",
    "pending",
    "resolved_manually",
    "complete",
)
"""States of steps by how much they ask to be looked at; the first one among the instances of a batch speaks for all."""


def reported_text(report: Reported | None, *, ago_seconds: float = 0.0) -> str:
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


def number(value: float) -> str:
    """A number without digits that say nothing."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


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


def duration(milliseconds: float | None) -> str:
    """`7 ms`, `1.4 s`, `3 m 05 s`, `2 h 10 m`; nothing for None."""
    if milliseconds is None:
        return ""
    if round(milliseconds) < 1000:
        return f"{round(milliseconds)} ms"
    seconds = milliseconds / 1000
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} m"


def countdown(seconds: float) -> str:
    """`in 7 s`, `in 3 m 05 s`, and `now` when the time has come."""
    left = math.ceil(seconds)
    if left <= 0:
        return "now"
    return f"in {left} s" if left < 60 else f"in {duration(left * 1000)}"


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


def one_line(text: str, limit: int = 200) -> str:
    """The text with its line breaks as spaces, shortened."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


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


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
