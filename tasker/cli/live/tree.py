"""Tree of a running task as rows of text, independent of a screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from tasker.cli.render.values import attempt_text, reported_text, unserved_text
from tasker.dataclasses import dataclass
from tasker.services.wording import URGENCY, countdown, counted, duration, one_line
from tasker.template.drawing import TreeRow, tree_rows
from tasker.views.progress import StepProgress

if TYPE_CHECKING:
    from tasker.template.plan import Plan

ABSENT = "absent"
"""Placeholder state of a step that does not exist, or not yet."""

RANKED = (*URGENCY, ABSENT)

BAR_WIDTH = 12


@dataclass(frozen=True, slots=True)
class LiveRow:
    """One row: the lines of the tree and the name, the state, attempts, time, and a note.

    `explained`: the note is the reason why the step waits, and is not cut if there is room for it below.
    """

    prefix: str
    name: str
    state: str
    attempt: str = ""
    time: str = ""
    note: str = ""
    explained: bool = False


class Tree:
    """Builder of the rows for the steps of one plan."""

    def __init__(self, plan: Plan) -> None:
        self._lines = list(tree_rows(plan))
        self._batches = {step.name for step in plan.steps if step.type.is_pattern}

    def rows(
        self,
        steps: Mapping[str, StepProgress],
        now: datetime,
        *,
        finished: bool,
        height: int,
        why: Callable[[StepProgress], str] = lambda step: "",
    ) -> list[LiveRow]:
        """Return one row per step of the template, with all instances of a batch worker in one; at most `height` rows.

        `why` returns the reason why a step has waited for long.
        """
        instances: dict[str, list[StepProgress]] = {}
        for step in steps.values():
            instances.setdefault(step.template_step, []).append(step)
        rows = [self._row(line, instances.get(line.step.name, []), now, finished, why) for line in self._lines]
        return fitted(rows, height)

    def _row(
        self,
        line: TreeRow,
        steps: Sequence[StepProgress],
        now: datetime,
        finished: bool,
        why: Callable[[StepProgress], str],
    ) -> LiveRow:
        name = line.step.name
        if not steps:
            return LiveRow(line.prefix, name, ABSENT, note="not created" if finished else "")
        if name in self._batches:
            return batch_row(line.prefix, name, steps, now, why)
        row = step_row(line.prefix, steps[0], now, why(steps[0]))
        return replace(row, note=row.note or f"after {' + '.join(line.joins)}") if line.joins else row


def step_row(prefix: str, step: StepProgress, now: datetime, sentence: str = "") -> LiveRow:
    """Return the row of one step; `sentence` is the reason why it waits, if it does."""
    attempt = attempt_text(step.state, step.attempts, step.max_attempts)
    if sentence:
        return LiveRow(prefix, step.name, step.state, attempt, time_of(step, now), sentence, explained=True)
    items = _items([step]) if step.state != "complete" and step.reported is None else ""
    notes = [items, _reported(step, now), _error(step), _unserved(step)]
    return LiveRow(prefix, step.name, step.state, attempt, time_of(step, now), " · ".join(filter(None, notes)))


def batch_row(
    prefix: str,
    name: str,
    steps: Sequence[StepProgress],
    now: datetime,
    why: Callable[[StepProgress], str] = lambda step: "",
) -> LiveRow:
    """Return one row with a progress bar for all instances of a batch worker."""
    states = Counter(step.state for step in steps)
    done = states["complete"] + states["resolved_manually"]
    speaker = min(steps, key=lambda step: URGENCY.index(step.state))
    begun = [step.started_at for step in steps if step.started_at]
    last = now if states["in_progress"] else max(step.at for step in steps)
    time = duration((last - min(begun)).total_seconds() * 1000) if begun else ""
    others = [f"{states[state]} {state}" for state in ("in_progress", "waiting_for_retry", "error") if states[state]]
    items = _items(steps) if done < len(steps) else ""
    reason = why(speaker) or " · ".join(filter(None, (_error(speaker), _unserved(speaker))))
    notes = [bar(done, len(steps)), *others, items, reason]
    state = speaker.state if done < len(steps) else "complete"
    return LiveRow(
        prefix, f"{name} x {len(steps)}", state, f"{done}/{len(steps)} done", time, " · ".join(filter(None, notes))
    )


def bar(done: int, total: int) -> str:
    """Render a progress bar."""
    full = BAR_WIDTH * done // total
    return "█" * full + "░" * (BAR_WIDTH - full)


def time_of(step: StepProgress, now: datetime) -> str:
    """Return the step's duration so far; for a step that waits for a time, the time until then."""
    if step.state in ("pending", "waiting_for_retry") and step.due_at is not None:
        return countdown((step.due_at - now).total_seconds())
    if step.state == "in_progress" and step.started_at is not None:
        return duration(max(0.0, (now - step.started_at).total_seconds() * 1000))
    return duration(step.duration_ms)


def fitted(rows: Sequence[LiveRow], height: int) -> list[LiveRow]:
    """Return the rows; if there are too many, the most urgent ones in their order and a count of the others."""
    if len(rows) <= height:
        return list(rows)
    ranked = sorted(range(len(rows)), key=lambda index: RANKED.index(rows[index].state))
    visible = sorted(ranked[: max(1, height - 1)])
    hidden = Counter(rows[index].state for index in ranked[len(visible) :])
    rest = ", ".join(f"{hidden[state]} {state}" for state in RANKED if hidden[state])
    return [
        *(rows[index] for index in visible),
        LiveRow("", f"and {counted(sum(hidden.values()), 'step')} more: {rest}", ""),
    ]


def _items(steps: Sequence[StepProgress]) -> str:
    total = sum(step.items_processed or 0 for step in steps)
    return f"{total} items" if total else ""


def _reported(step: StepProgress, now: datetime) -> str:
    """Render the progress report of the handler, with a bar if it has a percentage."""
    report = step.reported
    if report is None:
        return ""
    text = reported_text(report, ago_seconds=(now - report.reported_at).total_seconds())
    return text if report.percent is None else f"{bar(round(report.percent), 100)} {text}"


def _error(step: StepProgress) -> str:
    return f"{step.error['type']}: {one_line(step.error['message'])}" if step.error else ""


def _unserved(step: StepProgress) -> str:
    return unserved_text(step.unserved) if step.unserved else ""
