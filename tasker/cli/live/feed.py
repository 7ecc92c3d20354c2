"""State of a running task, updated by polling for changes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tasker.cli.live.waits import WaitReasons
from tasker.services.progress import StepProgress, TaskProgress

if TYPE_CHECKING:
    from tasker.cli.place.fleet import TaskService

OVERLAP = timedelta(seconds=5)
"""Overlap of two polls, because a transaction may commit after others that began later."""


class Feed:
    """State of a task and its steps as of the last `poll`, and the reasons for waiting as of the last `explain`.

    `stopping` is set when the watching process is the worker and is shutting down: its steps are then not reported as
    unserved.
    """

    waits = WaitReasons()
    stopping = False

    def __init__(self, tasks: TaskService, task_uuid: str) -> None:
        self.task_uuid = task_uuid
        self.steps: dict[str, StepProgress] = {}
        self.task: TaskProgress | None = None
        self._tasks = tasks
        self._polled_at = 0.0

    async def poll(self) -> Sequence[StepProgress]:
        """Poll the database and return the steps that have changed."""
        since = self.task.at - OVERLAP if self.task else None
        self.task = await self._tasks.progress(self.task_uuid, since)
        self._polled_at = time.monotonic()
        steps = [replace(step, unserved=None) for step in self.task.steps] if self.stopping else self.task.steps
        changed = [step for step in steps if self.steps.get(step.name) != step]
        self.steps.update((step.name, step) for step in steps)
        return changed

    async def explain(self) -> None:
        """Query why steps have waited for long; no query is made if none has."""
        if self.task and not self.task.finished and not self.stopping:
            self.waits = await WaitReasons.of(self._tasks, self.task_uuid, list(self.steps.values()), self.now())

    def why(self, step: StepProgress) -> str:
        """Return the reason why a step has waited for long; '' for other steps, and after the task has ended."""
        return "" if self.task is None or self.task.finished else self.waits.why(step, self.now())

    def now(self) -> datetime:
        """Return the current time of the database's clock."""
        assert self.task is not None
        return self.task.at + timedelta(seconds=time.monotonic() - self._polled_at)
