"""Table of a task's steps, fit to the screen, with the instances of a batch worker folded into one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from tasker.cli.render.table import table
from tasker.cli.render.values import COLOURS, SYMBOLS, URGENCY, countdown, duration, middle_cut, state_text
from tasker.services.folding import folded, folded_names, span

if TYPE_CHECKING:
    from tasker.services.reports import StepReport

HEADINGS = ("step", "state", "attempts", "took", "depends on")
NOTABLE = ("error", "waiting_for_retry")
NOTABLE_SHOWN = 10
MOST_ROWS = 500
"""Steps, or batch workers with all their instances, that are shown unless every step is wanted."""
SHORTEST = 12
"""Minimum width of a shortened name; the minimum of the dependencies is the width of their heading."""

Cells = tuple[str, ...]


def steps_text(steps: Sequence[StepReport], *, every: bool, width: int | None, now: datetime | None = None) -> str:
    """Render one row per step; instances of a batch worker are folded, with the failed ones below, unless `every`.

    Rows are shortened to `width` columns; None leaves them uncut.
    """
    now = now or datetime.now(UTC)
    groups = [[step] for step in steps] if every else list(folded(steps))
    shown = groups if every else groups[:MOST_ROWS]
    rows = [row for group in shown for row in _rows(group, now)]
    if left := sum(map(len, groups[len(shown) :])):
        rows.append((f"and {left:,} more", "--all shows each step"))
    return table(HEADINGS, [_fitted(row, rows, width) for row in rows])


def _rows(group: Sequence[StepReport], now: datetime) -> Iterator[Cells]:
    if len(group) == 1:
        yield _row(group[0], now)
        return
    yield span([step.name for step in group]), _counts(group)
    notable = [step for step in group if step.state in NOTABLE]
    for step in notable[:NOTABLE_SHOWN]:
        yield (f"  {step.name}", *_row(step, now)[1:4], "")
    if len(notable) > NOTABLE_SHOWN:
        yield f"  and {len(notable) - NOTABLE_SHOWN} more", "--all shows each step"


def _row(step: StepReport, now: datetime) -> Cells:
    attempts = f"{step.attempts}/{step.max_attempts}" if step.attempts else "reused" if step.reused_from else ""
    return step.name, state_text(step.state), attempts, _time(step, now), ", ".join(folded_names(step.depends_on))


def _counts(group: Sequence[StepReport]) -> str:
    """Render `498 complete, 2 error, up to 1.2 s` (the longest duration), in the colour of the most urgent state."""
    states = Counter(step.state for step in group)
    speaker = min(states, key=URGENCY.index)
    counts = ", ".join(f"{states[state]} {state}" for state in reversed(URGENCY) if states[state])
    text = click.style(f"{SYMBOLS[speaker]} {counts}", fg=COLOURS.get(speaker))
    longest = max((step.duration_ms for step in group if step.duration_ms is not None), default=None)
    return text if longest is None else f"{text}, up to {duration(longest)}"


def _time(step: StepReport, now: datetime) -> str:
    if step.begins_at:
        return f"begins {countdown((step.begins_at - now).total_seconds())}"
    due = due_at(step)
    return f"again {countdown((due - now).total_seconds())}" if due else duration(step.duration_ms)


def due_at(step: StepReport) -> datetime | None:
    """Return the time at which a step that waits for a retry is due, or None."""
    last = step.failures[-1] if step.failures and step.state == "waiting_for_retry" else {}
    if last.get("retry_in_ms") is None or last.get("at") is None:
        return None
    return datetime.fromisoformat(last["at"]) + timedelta(milliseconds=last["retry_in_ms"])


def _fitted(row: Cells, rows: Sequence[Cells], width: int | None) -> Cells:
    """Return the row with its name and dependencies shortened to the space that the other columns leave."""
    whole = [each for each in rows if len(each) == len(HEADINGS)]
    if width is None or not whole:
        return row
    used = sum(max(len(click.unstyle(each[column])) for each in [HEADINGS, *whole]) for column in (1, 2, 3)) + 8
    names = max(len(each[0]) for each in rows)
    least = len(HEADINGS[-1])
    name = max(SHORTEST, min(names, width - used - least))
    rest = max(least, width - used - name)
    last = _cut(row[-1], rest if len(row) == len(HEADINGS) else width - name - 2)
    return (middle_cut(row[0], name), *row[1:-1], last)


def _cut(cell: str, width: int) -> str:
    text = click.unstyle(cell)
    return cell if len(text) <= width else f"{text[: width - 1]}…"
