"""Charts of the last hour, divided into slices: data for a script, and lines that need no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.services.fleet.activity import Activity
from tasker.services.wording import duration, number


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Line of a chart: its style class and a number per slice."""

    look: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart as the server draws it; `words` describe its content in a sentence."""

    kind: str
    title: str
    words: str
    lines: Sequence[ChartLine]

    @property
    def highest(self) -> float:
        return max((value for line in self.lines for value in line.values), default=0)


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts of a page; `data` has the start times of the slices (seconds since 1970) and the rows of each chart."""

    data: Mapping[str, Any]
    charts: Sequence[Chart]


def charts_of(lately: Activity) -> Charts:
    """Return charts of tasks per minute and of how long steps waited in the queue."""
    each = lately.seconds / lately.slices
    began = lately.at.timestamp() - lately.seconds
    moments = [round(began + place * each) for place in range(lately.slices)]
    tasks = [
        [round(60 * count / each, 3) for count in counts] for counts in (lately.submitted, lately.ended, lately.failed)
    ]
    waits = [list(lately.waits_p50_ms), list(lately.waits_p95_ms)]
    return Charts({"moments": moments, "tasks": tasks, "waits": waits}, [_tasks(lately, tasks), _waits(lately, waits)])


def _tasks(lately: Activity, rows: Sequence[Sequence[float]]) -> Chart:
    sums = [number(sum(counts)) for counts in (lately.submitted, lately.ended, lately.failed)]
    words = f"{sums[0]} submitted, {sums[1]} ended, {sums[2]} of them failed"
    looks = zip(("runs", "done", "failed"), rows, strict=True)
    return Chart("tasks", "Tasks a minute", words, [ChartLine(*each) for each in looks])


def _waits(lately: Activity, rows: Sequence[Sequence[float | None]]) -> Chart:
    words = "no step has waited"
    if lately.wait_p50_ms is not None and lately.wait_p95_ms is not None:
        words = (
            f"half of the steps within {duration(lately.wait_p50_ms)}, 95 of 100 within {duration(lately.wait_p95_ms)}"
        )
    looks = zip(("runs", "retries"), ([value or 0.0 for value in row] for row in rows), strict=True)
    return Chart("waits", "Wait in the queue", words, [ChartLine(*each) for each in looks])
