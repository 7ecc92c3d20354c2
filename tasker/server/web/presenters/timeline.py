"""Gantt chart of a task: when each step waited, was queued, ran, and backed off before its next attempt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from tasker.dataclasses import dataclass
from tasker.engine.states.step import StepState
from tasker.engine.states.task import TERMINAL
from tasker.services.wording import duration
from tasker.views.task_lists import TransitionDetail

WIDE = 1000
"""Width of the whole time span, in the units of a bar."""
PHASES = {
    StepState.PENDING: "waiting",
    StepState.ENQUEUED: "queued",
    StepState.IN_PROGRESS: "running",
    StepState.ENQUEUED_FOR_ORCHESTRATION: "running",
    StepState.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION: "running",
    StepState.WAITING_FOR_RETRY: "back-off",
}
"""Phase of a step in each state; the other states have none."""
ORDER = ("waiting", "queued", "running", "back-off")


@dataclass(frozen=True, slots=True)
class Bar:
    """Part of the time of a step; `x` and `width` are fractions of `WIDE`, the whole time span."""

    phase: str
    attempt: int
    milliseconds: float
    x: float
    width: float

    @property
    def words(self) -> str:
        """Phase, duration and attempt in words."""
        which = f", attempt {self.attempt}" if self.phase in ("running", "back-off") and self.attempt else ""
        return f"{self.phase} {duration(self.milliseconds)}{which}"


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """Step with its bars in chronological order and the total time of each phase in milliseconds."""

    step: str
    state: str
    bars: Sequence[Bar]
    totals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Time from `start` to `end`: the last change of the task if nothing of it is in progress, otherwise now."""

    start: datetime
    end: datetime
    rows: Sequence[TimelineRow]

    @property
    def milliseconds(self) -> float:
        """Length of the whole time span."""
        return (self.end - self.start).total_seconds() * 1000

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Positions of the scale with the time since the start."""
        return [(WIDE * part / 4, duration(self.milliseconds * part / 4)) for part in range(5)]


def timeline(history: Sequence[TransitionDetail], now: datetime) -> Timeline | None:
    """The timeline of a task from its whole history, or from its own and that of a page of its steps; None without."""
    if not history:
        return None
    moves: defaultdict[str, list[TransitionDetail]] = defaultdict(list)
    for entry in history:
        if entry.step is not None:
            moves[entry.step].append(entry)
    start = min(transition.at for transition in history)
    ended = _last_of_task(history) in TERMINAL
    open_ = not ended and any(StepState(transitions[-1].to_state) in PHASES for transitions in moves.values())
    end = max(now, start) if open_ else max(transition.at for transition in history)
    rows = [_row(step, transitions, start, end) for step, transitions in moves.items()]
    return Timeline(start, end, sorted(rows, key=_begin))


def _last_of_task(history: Sequence[TransitionDetail]) -> str:
    return next((transition.to_state for transition in reversed(history) if transition.step is None), "")


def _begin(row: TimelineRow) -> float:
    """Return the position of the first bar that is not `waiting`."""
    return next((bar.x for bar in row.bars if bar.phase != "waiting"), float(WIDE))


def _row(step: str, moves: Sequence[TransitionDetail], start: datetime, end: datetime) -> TimelineRow:
    bars = list(_bars(moves, start, end))
    totals = {phase: sum(bar.milliseconds for bar in bars if bar.phase == phase) for phase in ORDER}
    return TimelineRow(step, moves[-1].to_state, bars, totals)


def _bars(moves: Sequence[TransitionDetail], start: datetime, end: datetime) -> Iterable[Bar]:
    """Yield the bars, without those of no duration; adjacent ones of the same phase and attempt are merged."""
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
