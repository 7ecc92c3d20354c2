"""The real engine in tests: an embedded database whose time tests move, and handles of running tasks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import tasker
from tasker.dataclasses import dataclass
from tasker.db.connection import Connection
from tasker.errors import UsageError
from tasker.template.durations import EXPECTED, parse_duration
from tasker.views.events import EventFilter
from tasker.views.tasks import TaskReport

SCRIPT = Path(__file__).with_name("clock.sql")
PAUSE_SECONDS = 0.005
PAGE = 500
LATE_MS = 1
"""How far a hop goes beyond the timer to which it leads."""


class EngineClock:
    """Time of the engine in the database of an app for tests. It goes on by itself, and `advance` moves it forward.

    What waits (retries, delays, waits, schedules, deadlines) becomes due in order, as if the time had passed. Only the
    database's time moves: `time.time()` and `datetime.now()` in handlers do not.
    """

    def __init__(self, app: tasker.SyncApp) -> None:
        self._loop, self._connection = app._loop, Connection(app.database_url, name="tasker test clock")
        self._execute(SCRIPT.read_text(encoding="utf-8"))

    @property
    def now(self) -> datetime:
        """The engine's time."""
        now: datetime = self._execute("select tasker.now()")[0][0]
        return now

    def advance(self, time_: str | float | timedelta, *, timeout: float = 30.0) -> None:
        """Move the time forward, from timer to timer, and let what becomes due run each time.

        Args:
            time_: Seconds, a duration such as `3d`, or a timedelta.
            timeout: Seconds of real time after which `TimeoutError` is raised because steps are still running.
        """
        left, ends = _seconds(time_) * 1000, time.monotonic() + timeout
        self._settle(ends)
        while left > 0:
            next_ms = self._execute("select tasker_testing.next_timer_ms()")[0][0]
            hop = left if next_ms is None or next_ms > left else max(next_ms + LATE_MS, LATE_MS)
            self._execute("select tasker_testing.advance(%s * interval '1 millisecond')", hop)
            left -= hop
            self._settle(ends)

    def settle(self, *, timeout: float = 30.0) -> None:
        """Wait until nothing runs and nothing is due. Raises `TimeoutError`."""
        self._settle(time.monotonic() + timeout)

    def close(self) -> None:
        """Close the connection."""
        self._loop.wait(self._connection.close())

    def _settle(self, ends: float) -> None:
        quiet = 0
        while quiet < 2:
            quiet = 0 if self._execute("select tasker_testing.busy()")[0][0] else quiet + 1
            if time.monotonic() > ends:
                raise TimeoutError("steps are still running, or no worker serves them: see `tasker task explain`")
            time.sleep(PAUSE_SECONDS)

    def _execute(self, statement: str, *params: Any) -> Any:
        return self._loop.wait(self._connection.execute(statement, params or None))


class RunningTask:
    """Task of a test that runs on the real engine."""

    def __init__(self, app: tasker.SyncApp, task_uuid: str) -> None:
        self._app, self.task_uuid = app, task_uuid

    @property
    def report(self) -> TaskReport:
        """Report of the task as it is now."""
        return self._app.tasks.report(self.task_uuid)

    @property
    def status(self) -> str:
        """State of the task."""
        return self.report.status

    def result(self, step: str) -> Any:
        """Return the result of a step. Raises `KeyError` if it has none."""
        return self.report.results[step]

    def wait(self, timeout: float = 30.0) -> TaskReport:
        """Wait for the end of the task. Raises `TimeoutError` of Tasker."""
        return self._app.wait(self.task_uuid, timeout=timeout)


def submit(
    app: tasker.SyncApp, target: str | Path, values: Mapping[str, Any], *, wait: bool, timeout: float, **options: Any
) -> TaskReport | RunningTask:
    """Run a task to its end, or submit it and return its handle."""
    if wait:
        return app.run(target, values, timeout=timeout, **options)
    return RunningTask(app, app.submit(target, values, **options).task_uuid)


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """Durable event that a task of a test published."""

    name: str
    payload: Mapping[str, Any] | None
    step: str | None


def published_by(app: tasker.SyncApp, task_uuid: str) -> list[EngineEvent]:
    """Return the durable events that a task published, in order."""
    events: list[EngineEvent] = []
    after: int | None = None
    while True:
        page = app.domain_events.page(EventFilter(task=task_uuid), after=after, limit=PAGE)
        events += [EngineEvent(row.event_name, row.payload, row.metadata.get("step_name")) for row in page.events]
        if len(page.events) < PAGE:
            return events
        after = page.last


def _seconds(value: str | float | timedelta) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    try:
        return parse_duration(value) if isinstance(value, str) else float(value)
    except ValueError as error:
        raise UsageError(f"{value!r} is no time: {error}", hint=f"expected seconds, or {EXPECTED}") from None
