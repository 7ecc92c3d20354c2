"""View that writes one line of JSON for each change of a step or of the task, for programs that follow a task."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tasker.cli.live.waits import WaitChanges
from tasker.services.progress import StepProgress

if TYPE_CHECKING:
    from tasker.cli.live.feed import Feed

TASK_FIELDS = ("status", "finished", "total", "done", "failed", "pauses", "at")


class JsonLines:
    """View that passes JSON objects to `write`; the last one is the task with `finished` true."""

    interval = 0.2

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._told: dict[str, Any] = {}
        self._news = WaitChanges()

    def show(self, feed: Feed, changed: Sequence[StepProgress]) -> None:
        """Write the changes: steps in order of time, then reasons for long waits, then the task."""
        assert feed.task is not None
        for step in sorted(changed, key=lambda step: step.at):
            self._line(feed.task_uuid, "step", asdict(step))
        for each in self._news.among(feed.waits.reasons):
            self._line(feed.task_uuid, "waits", each.to_dict())
        task = {name: getattr(feed.task, name) for name in TASK_FIELDS}
        if self._told != {**task, "at": self._told.get("at")}:
            self._told = task
            self._line(feed.task_uuid, "task", task)

    def say(self, text: str) -> None:
        """Print the message to stderr, so that stdout has only JSON."""
        print(text, file=sys.stderr)

    def close(self) -> None:
        """Do nothing: every line is written at once."""

    def _line(self, task_uuid: str, kind: str, fields: dict[str, Any]) -> None:
        row = {"kind": kind, "task_uuid": task_uuid, **fields}
        self._write(json.dumps(row, ensure_ascii=False, default=lambda moment: moment.isoformat()))
