"""When each step waited, was queued, ran and rested before its next attempt, as bars along one line of time (Gantt)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from tasker.contracts.dataclasses import dataclass
from tasker.lifecycle.machines.step import StepState
from tasker.lifecycle.machines.task import TERMINAL
from tasker.services.listings import TransitionDetail
from tasker.services.wording import duration

WIDE = 1000
"""All of the time, in the units of a bar."""
PHASES = {
    StepState.PENDING: "waiting",
    StepState.ENQUEUED: "queued",
    StepState.IN_PROGRESS: "running",
    StepState.ENQUEUED_FOR_ORCHESTRATION: "running",
    StepState.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION: "running",
    StepState.WAITING_FOR_RETRY: "back-off",
}
"""What a step does while it is in a state; it does nothing in the others."""
ORDER = ("waiting", "queued", "running", "back-off")


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of the time of a step; `x` and `width` in `WIDE` for all of it."""

    phase: str
    attempt: int
    milliseconds: float
    x: float
    width: float

    @property
    def words(self) -> str:
        """What it shows."""
        which = f", attempt {self.attempt}" if self.phase in ("running", "back-off") and self.attempt else ""
        return f"{self.phase} {duration(self.milliseconds)}{which}"


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A step with its bars, in the order of time, and how long each phase took altogether, in milliseconds."""

    step: str
    state: str
    bars: Sequence[Bar]
    totals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Timeline:
    """From `start` to `end`: the last change of a task that has ended, else now."""

    start: datetime
    end: datetime
    rows: Sequence[TimelineRow]

    @property
    def milliseconds(self) -> float:
        """All of the time."""
        return (self.end - self.start).total_seconds() * 1000

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places of the scale with the time since the start."""
        return [(WIDE * part / 4, duration(self.milliseconds * part / 4)) for part in range(5)]


def timeline(history: Sequence[TransitionDetail], now: datetime) -> Timeline | None:
    """The timeline of a task from its whole history, or from its own and that of a page of its steps; None without."""
    if not history:
        return None
    moves: defaultdict[str, list[TransitionDetail]] = defaultdict(list)
    for each in history:
        if each.step is not None:
            moves[each.step].append(each)
    start = min(each.at for each in history)
    ended = _last_of_task(history) in TERMINAL
    open_ = not ended and any(StepState(found[-1].to_state) in PHASES for found in moves.values())
    end = max(now, start) if open_ else max(each.at for each in history)
    rows = [_row(step, found, start, end) for step, found in moves.items()]
    return Timeline(start, end, sorted(rows, key=_begin))


def _last_of_task(history: Sequence[TransitionDetail]) -> str:
    """The state that the task is in."""
    return next((each.to_state for each in reversed(history) if each.step is None), "")


def _begin(row: TimelineRow) -> float:
    """When it first did more than wait."""
    return next((bar.x for bar in row.bars if bar.phase != "waiting"), float(WIDE))


def _row(step: str, moves: Sequence[TransitionDetail], start: datetime, end: datetime) -> TimelineRow:
    bars = list(_bars(moves, start, end))
    totals = {phase: sum(bar.milliseconds for bar in bars if bar.phase == phase) for phase in ORDER}
    return TimelineRow(step, moves[-1].to_state, bars, totals)


def _bars(moves: Sequence[TransitionDetail], start: datetime, end: datetime) -> Iterable[Bar]:
    """What lasted no time is left out; neighbours of one phase and attempt are one."""
    whole = max((end - start).total_seconds(), 1e-6)
    last: Bar | None = None
    for move, following in zip(moves, [*moves[1:], None], strict=True):
        phase = PHASES.get(StepState(move.to_state))
        until = end if following is None else following.at
        seconds = (until - move.at).total_seconds()
        if phase is None or seconds <= 0:
            continue
        x, width = WIDE * (move.at - start).total_seconds() / whole, WIDE * seconds / whole
        bar = Bar(phase, move.attempt or 0, seconds * 1000, x, width)
        if last is not None and (last.phase, last.attempt) == (bar.phase, bar.attempt):
            last = Bar(phase, bar.attempt, last.milliseconds + bar.milliseconds, last.x, last.width + width)
            continue
        if last is not None:
            yield last
        last = bar
    if last is not None:
        yield last
