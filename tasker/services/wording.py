"""Values and grouped steps in words, the same on a terminal and a page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from tasker.template.step_types import PATTERNS
from tasker.views.explanation import flattened

if TYPE_CHECKING:
    from tasker.views.tasks import StepReport

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
"""Symbols of step and task states; any other state has `▶`."""
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
"""Step states by urgency; the most urgent one among the instances of a batch is shown for all of them."""


def number(value: float) -> str:
    """Format a number, with two decimals unless it is whole."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def duration(milliseconds: float | None) -> str:
    """Format a duration as `7 ms`, `1.4 s`, `3 m 05 s` or `2 h 10 m`; empty for None."""
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
    """`in 100 ms`, `in 7 s`, `in 3 m 05 s`, and `now` when the time has come."""
    if seconds <= 0:
        return "now"
    if (milliseconds := max(1, round(1000 * seconds))) < 1000:
        return f"in {duration(milliseconds)}"
    left = math.ceil(seconds)
    return f"in {left} s" if left < 60 else f"in {duration(left * 1000)}"


def one_line(text: str, limit: int = 200) -> str:
    """Return the text on one line, shortened to `limit` characters."""
    flat = flattened(text)
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def counted(number: int, noun: str) -> str:
    """Format a count with its noun: `1 step`, `2 steps`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


FOLDED_FROM = 5
"""Minimum number of instances that are folded; fewer are shown one by one."""

NUMBERED = re.compile(r"(.+_)(\d+)")


def folded(steps: Sequence[StepReport]) -> Iterator[Sequence[StepReport]]:
    """Yield the steps in their order, many instances of a batch worker as one group, all others alone."""
    for base, group in groupby(steps, lambda step: _base(step.name) if step.type in PATTERNS else None):
        members = list(group)
        if base is not None and len(members) >= FOLDED_FROM:
            yield members
        else:
            yield from ([step] for step in members)


def folded_names(names: Sequence[str]) -> list[str]:
    """Return the names in their order, with long runs that differ only in their number as `work_001..500`."""
    shortened: list[str] = []
    for base, group in groupby(names, _base):
        row = list(group)
        shortened += [span(row)] if base is not None and len(row) >= FOLDED_FROM else row
    return shortened


def span(names: Sequence[str]) -> str:
    """Return `work_001..500` for names that differ only in their number."""
    return f"{names[0]}..{names[-1].removeprefix(_base(names[-1]) or '')}"


def _base(name: str) -> str | None:
    match = NUMBERED.fullmatch(name)
    return match[1] if match else None
