"""Decision of what a schedule does when it is due: which fire times get a task, which wait, and when it is due next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.fire_times import FireTimes, jitter
from tasker.template.schedules import ScheduleSpec

MISSED_AFTER = timedelta(minutes=1)
"""Lateness above which a fire time counts as missed."""
MOST_MISSED = 100
"""Missed fire times that get a task of their own with `missed_fire: all`; earlier ones are recorded as missed."""
QUEUED_SLICE = 20
"""Waiting fire times that one decision reads."""
FIRST_RECHECK, LAST_RECHECK = timedelta(milliseconds=500), timedelta(seconds=15)
"""Bounds of the pause after which a schedule with waiting fires looks whether its open task has ended."""


@dataclass(frozen=True, slots=True)
class QueuedFire:
    """Fire time that waits for its task, and the fire time with a task before it."""

    fire_at: datetime
    kind: str
    previous: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """Row of a schedule, as the query `state` returns it. `stopped`: it is paused, or no template declares it."""

    schedule: str
    namespace: str
    template: str
    name: str
    version: str | None
    spec: ScheduleSpec
    revision: int
    anchor_at: datetime
    now: datetime
    stopped: bool = False
    running: Sequence[str] = ()
    catching_up: bool = False
    last_fire_at: datetime | None = None
    last_fired_at: datetime | None = None
    queued: Sequence[QueuedFire] = ()

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> ScheduleState:
        """Parse the row. Raises `TypeError` for a schedule of a newer version of Tasker."""
        times = {
            key: _time(row[key])
            for key in ("anchor_at", "now", "last_fire_at", "last_fired_at")
            if row[key] is not None
        }
        queued = [
            QueuedFire(_time(q["fire_at"]), q["kind"], q["previous"] and _time(q["previous"])) for q in row["queued"]
        ]
        return cls(**{**row, **times, "spec": ScheduleSpec.parse(row["spec"]), "queued": queued})


@dataclass(frozen=True, slots=True)
class Fire:
    """Decision about one fire time. With the outcome `fired` a task is submitted; `previous` is for its context."""

    fire_at: datetime
    kind: str
    outcome: str
    previous: datetime | None = None
    detail: Mapping[str, Any] | None = None


@dataclass(slots=True)
class FirePlan:
    """Decisions about a schedule. `due_at` is its next timer, None if it has nothing to do; `cancel` are open tasks
    that make room for a waiting fire."""

    anchor_at: datetime
    next_at: datetime | None = None
    due_at: datetime | None = None
    fires: list[Fire] = field(default_factory=list)
    cancel: Sequence[str] = ()


def plan_fires(state: ScheduleState) -> FirePlan:
    """Return what the schedule does now."""
    return _Planner(state).plan()


class _Planner:
    def __init__(self, state: ScheduleState) -> None:
        self._state, self._spec = state, state.spec
        self._times, self._delay = FireTimes(state.spec), jitter(state.schedule, state.spec)
        self._alone = state.spec.overlap != "allow"
        self._running, self._catching_up = bool(state.running), state.catching_up
        self._previous = state.last_fire_at
        self._waiting = [queued for queued in state.queued if queued.kind == "schedule"]
        self._behind = [queued for queued in state.queued if queued.kind != "schedule"]
        self._plan = FirePlan(state.anchor_at)

    def plan(self) -> FirePlan:
        for queued in [*self._waiting]:
            if self._has_room():
                self._fire(queued)
        if not self._state.stopped:
            self._fire_due()
        for queued in [*self._behind]:
            if self._has_room() and not self._waiting:
                self._fire(queued)
        self._cancel()
        self._set_next()
        return self._plan

    def _has_room(self) -> bool:
        return not (self._alone and (self._running or self._catching_up))

    def _fire(self, queued: QueuedFire) -> None:
        self._add(queued.fire_at, queued.kind, "fired", previous=queued.previous)
        if queued.kind == "schedule":
            self._waiting.remove(queued)
            self._running = True
        else:
            self._behind.remove(queued)
            self._catching_up = True

    def _fire_due(self) -> None:
        """Decide about the fire times since the last decision."""
        until = self._state.now - self._delay
        due, more = self._times.latest(self._state.anchor_at, until, MOST_MISSED)
        if not due:
            return
        self._plan.anchor_at = due[-1]
        if due[0] >= until - MISSED_AFTER and not more:
            for moment in due:
                self._judge(moment)
        elif self._spec.missed_fire == "all":
            self._record_missed([], more, due[0])
            self._behind += [QueuedFire(moment, "missed") for moment in due]
            for moment in due:
                self._add(moment, "missed", "queued")
        else:
            late = [moment for moment in due if moment < until - MISSED_AFTER]
            missed = due[:-1] if self._spec.missed_fire == "once" else late
            self._record_missed(missed, more, due[0])
            for moment in due[len(missed) :]:
                self._judge(moment)

    def _record_missed(self, missed: Sequence[datetime], more: bool, first: datetime) -> None:
        """Record fire times without a task in one row, at the last of them."""
        if more:
            before, _ = self._times.latest(self._state.anchor_at, first - timedelta(seconds=1), 1)
            missed = [*before, *missed]
        if not missed:
            return
        begin = self._times.after(self._state.anchor_at) if more else missed[0]
        detail = {"from": (begin or missed[0]).isoformat(), "count": len(missed), "more": more}
        self._add(missed[-1], "schedule", "missed", detail=detail)

    def _judge(self, moment: datetime) -> None:
        """Decide about a fire time that is due, by the tasks that are open."""
        if self._has_room() and not self._waiting:
            self._add(moment, "schedule", "fired", previous=self._previous)
            self._previous = moment
            self._running = True
        elif self._spec.overlap == "cancel_running":
            for queued in self._waiting:  # the newest one takes its place
                self._add(queued.fire_at, "schedule", "skipped")
            self._wait(moment)
        elif self._waiting or (self._spec.overlap == "skip" and self._running):
            self._add(moment, "schedule", "skipped")
        else:
            self._wait(moment)

    def _wait(self, moment: datetime) -> None:
        self._waiting = [QueuedFire(moment, "schedule", self._previous)]
        self._add(moment, "schedule", "queued")

    def _add(
        self,
        fire_at: datetime,
        kind: str,
        outcome: str,
        previous: datetime | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        fires = self._plan.fires
        fires[:] = [fire for fire in fires if fire.fire_at != fire_at]  # what was queued a moment ago may fire now
        fires.append(Fire(fire_at, kind, outcome, previous, detail))

    def _cancel(self) -> None:
        if self._waiting and self._spec.overlap == "cancel_running":
            self._plan.cancel = self._state.running

    def _set_next(self) -> None:
        plan, state = self._plan, self._state
        if not state.stopped:
            plan.next_at = self._times.after(plan.anchor_at)
            plan.due_at = None if plan.next_at is None else plan.next_at + self._delay
        if self._waiting or self._behind or len(state.queued) == QUEUED_SLICE:
            recheck = state.now + (self._recheck() if not self._has_room() else timedelta())
            plan.due_at = recheck if plan.due_at is None else min(recheck, plan.due_at)

    def _recheck(self) -> timedelta:
        """Return the pause until the open task is looked for again: a part of the time for which it has run."""
        begun = self._state.last_fired_at or self._state.now
        return min(max((self._state.now - begun) / 10, FIRST_RECHECK), LAST_RECHECK)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
