"""Charts of the last hour: what happened in each slice of it, as data for a script and as lines that need none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.services.fleet.activity import Activity
from tasker.services.wording import duration, number


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line of a chart: the class of its colour, and a number for each slice."""

    look: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as the server draws it; `words` say what it shows in a sentence."""

    kind: str
    title: str
    words: str
    lines: Sequence[ChartLine]

    @property
    def highest(self) -> float:
        """The number at its top."""
        return max((value for line in self.lines for value in line.values), default=0)


@dataclass(frozen=True, slots=True)
class Charts:
    """The charts of a page; `data` has the moments at which slices begin (seconds since 1970) and each chart's rows."""

    data: Mapping[str, Any]
    charts: Sequence[Chart]


def charts_of(lately: Activity) -> Charts:
    """Tasks a minute, and how long steps waited in the queue."""
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
