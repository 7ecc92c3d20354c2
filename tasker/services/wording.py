"""Values formatted for people, alike in a terminal and on a page: durations, numbers, symbols of states."""

from __future__ import annotations

import math

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
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def counted(number: int, noun: str) -> str:
    """Format a count with its noun: `1 step`, `2 steps`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
