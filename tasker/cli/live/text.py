"""Views of a running task that print a line for each change, as text or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.live.feed import Feed, WaitChanges
from tasker.cli.render.values import (
    attempt_text,
    clock_time,
    end_of_pause,
    held_by_pause,
    names_text,
    reported_text,
    state_text,
    unserved_text,
)
from tasker.services.wording import countdown, duration, folded_names, one_line
from tasker.views.progress import StepProgress

if TYPE_CHECKING:
    from tasker.views.explanation import Explained

TASK_FIELDS = ("status", "finished", "total", "done", "failed", "pauses", "at")


class JsonLines:
    """View that passes JSON objects to `write`; the last one is the task with `finished` true."""

    interval = 0.2

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._printed: dict[str, Any] = {}
        self._news = WaitChanges()

    def show(self, feed: Feed, changed: Sequence[StepProgress]) -> None:
        """Write the changes: steps in order of time, then reasons for long waits, then the task."""
        assert feed.task is not None
        for step in sorted(changed, key=lambda step: step.at):
            self._line(feed.task_uuid, "step", asdict(step))
        for reason in self._news.among(feed.waits.reasons):
            self._line(feed.task_uuid, "waits", reason.to_dict())
        task = {name: getattr(feed.task, name) for name in TASK_FIELDS}
        if self._printed != {**task, "at": self._printed.get("at")}:
            self._printed = task
            self._line(feed.task_uuid, "task", task)

    def say(self, text: str) -> None:
        """Print the message to stderr, so that stdout has only JSON."""
        print(text, file=sys.stderr)

    def close(self) -> None:
        """Do nothing: every line is written at once."""

    def _line(self, task_uuid: str, kind: str, fields: dict[str, Any]) -> None:
        row = {"kind": kind, "task_uuid": task_uuid, **fields}
        self._write(json.dumps(row, ensure_ascii=False, default=lambda moment: moment.isoformat()))


SILENT = frozenset({"pending", "enqueued", "enqueued_for_orchestration", "enqueued_as_error_for_orchestration"})
"""Transitional states that are not shown."""


ITEMS_PAUSE = timedelta(seconds=5)
"""Minimum time between two lines about checkpoints and progress reports of one step."""


class TextView:
    """View that passes lines of text to `write`."""

    interval = 0.2

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._shown: dict[str, StepProgress] = {}
        self._pauses: Sequence[Mapping[str, Any]] = ()
        self._news = WaitChanges()

    def show(self, feed: Feed, changed: Sequence[StepProgress]) -> None:
        """Write the changes in order of time."""
        for step in sorted(changed, key=lambda step: step.at):
            if (step.unserved or step.state not in SILENT) and _is_news(step, self._shown.get(step.name)):
                self._shown[step.name] = step
                self._write(line(step))
        self._tell_pauses(feed)
        for reason in self._news.among(feed.waits.reasons):
            self._write(waiting_line(reason, feed.now()))

    def _tell_pauses(self, feed: Feed) -> None:
        """Write the pauses that stop the task, if they have changed."""
        assert feed.task is not None
        before, self._pauses = self._pauses, feed.task.pauses
        for pause in self._pauses:
            if pause not in before:
                self._write(f"{held_by_pause(pause)}; to resume: {end_of_pause(pause)}")
        if before and not self._pauses and not feed.task.finished:
            self._write("no longer paused")

    def say(self, text: str) -> None:
        """Write the text as a line of its own."""
        self._write(text)

    def close(self) -> None:
        """Do nothing: every line is written at once."""


def _is_news(step: StepProgress, shown: StepProgress | None) -> bool:
    """Return whether the state or the attempt has changed, or progress is worth another line."""
    if shown is None or (shown.state, shown.attempts, shown.unserved) != (step.state, step.attempts, step.unserved):
        return True
    if step.reported is not None and shown.reported != step.reported:
        return shown.reported is None or step.reported.reported_at - shown.reported.reported_at >= ITEMS_PAUSE
    return shown.items_processed != step.items_processed and step.at - shown.at >= ITEMS_PAUSE


def line(step: StepProgress) -> str:
    """Render time, step, state, attempt and details."""
    attempt = attempt_text(step.state, step.attempts, step.max_attempts)
    details = [
        part
        for part in (
            duration(step.duration_ms),
            _items(step),
            reported_text(step.reported),
            _due(step),
            _error(step),
            _unserved(step),
        )
        if part
    ]
    at = step.at if step.reported is None else step.reported.reported_at
    text = f"{clock_time(at)}  {step.name}: {state_text(step.state)}{f'  {attempt}' if attempt else ''}"
    return text + (f"  {click.style(', '.join(details), dim=True)}" if details else "")


def waiting_line(reason: Explained, now: datetime) -> str:
    """Render time, the steps that have waited for long, and the reason."""
    names = names_text(folded_names(reason.steps), limit=5)
    more = f" and {reason.count - len(reason.steps):,} more" if reason.count > len(reason.steps) else ""
    return f"{clock_time(now)}  {names}{more}: {click.style(reason.sentence(), fg='yellow')}"


def _items(step: StepProgress) -> str:
    return f"{step.items_processed} items" if step.items_processed and step.state == "in_progress" else ""


def _due(step: StepProgress) -> str:
    if step.due_at is None or step.state not in ("pending", "waiting_for_retry"):
        return ""
    verb = "begins" if step.state == "pending" else "again"
    return f"{verb} {countdown((step.due_at - step.at).total_seconds())}"


def _error(step: StepProgress) -> str:
    return f"{step.error['type']}: {one_line(step.error['message'])}" if step.error else ""


def _unserved(step: StepProgress) -> str:
    return unserved_text(step.unserved) if step.unserved else ""
