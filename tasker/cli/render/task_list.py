"""Text output of a list of tasks, shortened if the screen is narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from tasker.cli.render.table import table
from tasker.cli.render.values import (
    date_time,
    duration,
    held_by_pause,
    middle_cut,
    nobody_serves,
    state_text,
    wrapped,
)

if TYPE_CHECKING:
    from tasker.services.listings import TaskSummary

SHORT_ID = 13
"""Number of leading characters of an identifier that encode the time of its task."""
MIN_TEMPLATE = 12
AGES = {"d": 86_400, "h": 3_600, "m": 60}


def list_text(rows: Sequence[TaskSummary], width: int | None = None, now: datetime | None = None) -> str:
    """Render one line per task, in full if it fits in `width` columns or if `width` is None.

    Otherwise identifiers are shortened (commands accept prefixes), ages replace times, versions are omitted, and the
    reason why a task waits is on a line below it.
    """
    if not rows:
        return "no tasks"
    whole = table(("task", "template", "status", "steps", "created", "time"), [_whole(row) for row in rows])
    if width is None or max(len(line) for line in click.unstyle(whole).splitlines()) <= width:
        return whole
    return "\n".join(_short(rows, width, now or datetime.now(UTC)))


def _whole(row: TaskSummary) -> tuple[str, ...]:
    took = (row.completed_at - row.created_at).total_seconds() * 1000 if row.completed_at else None
    template = f"{_template(row)}:{row.version}"
    status = ", ".join([state_text(row.status), *_remarks(row)])
    return row.task_uuid, template, status, _steps(row), date_time(row.created_at), duration(took)


def _short(rows: Sequence[TaskSummary], width: int, now: datetime) -> Iterator[str]:
    """Yield the lines of a table whose template column gets the space that the other columns leave."""
    ids = short_ids([row.task_uuid for row in rows])
    others = [(state_text(row.status), _steps(row, " ✖{}"), _age(now, row.created_at)) for row in rows]
    headings = ("status", "steps", "age")
    taken = sum(max(len(click.unstyle(cells[n])) for cells in (headings, *others)) + 2 for n in range(len(headings)))
    room = max(MIN_TEMPLATE, width - len(ids[0]) - 2 - taken)
    templates = [middle_cut(_template(row), room) for row in rows]
    cells = [(short, template, *rest) for short, template, rest in zip(ids, templates, others, strict=True)]
    first, *lines = table(("task", "template", *headings), cells).splitlines()
    yield first
    for line, row in zip(lines, rows, strict=True):
        yield line
        yield from (wrapped(remark, 2, width) for remark in _remarks(row))


def short_ids(ids: Sequence[str]) -> list[str]:
    """Return the shortest prefixes that keep the identifiers distinct, but at least `SHORT_ID` characters."""
    whole = max(map(len, ids))
    lengths = (length for length in range(SHORT_ID, whole) if len({each[:length] for each in ids}) == len({*ids}))
    length = next(lengths, whole)
    return [each[:length] for each in ids]


def _template(row: TaskSummary) -> str:
    return f"{row.namespace}/{row.template}"


def _steps(row: TaskSummary, failed: str = ", {} failed") -> str:
    return f"{row.done}/{row.total}" + (failed.format(row.failed) if row.failed else "")


def _age(now: datetime, created: datetime) -> str:
    seconds = max(0, round((now - created).total_seconds()))
    return next((f"{seconds // size} {unit}" for unit, size in AGES.items() if seconds >= 2 * size), f"{seconds} s")


def _remarks(row: TaskSummary) -> list[str]:
    paused = [held_by_pause(row.paused)] if row.paused else []
    until = [f"until {date_time(row.waits_until)}"] if row.waits_until else []
    return until + paused + ([nobody_serves(row.unserved)] if row.unserved else [])
