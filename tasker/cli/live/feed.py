"""What is known about a running task, kept up to date by asking for what changed."""

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
"""A transaction may be committed after others that began later; what it changed is asked for once more."""


class Feed:
    """The task and its steps as they were at the last `poll`; `waits` as of the last `explain`.

    `stopping`: who watches is who served the steps, and serves none any more. That is not told of each of them.
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
        """Ask the database; the steps that are not as they were."""
        since = self.task.at - OVERLAP if self.task else None
        self.task = await self._tasks.progress(self.task_uuid, since)
        self._polled_at = time.monotonic()
        steps = [replace(step, unserved=None) for step in self.task.steps] if self.stopping else self.task.steps
        changed = [step for step in steps if self.steps.get(step.name) != step]
        self.steps.update((step.name, step) for step in steps)
        return changed

    async def explain(self) -> None:
        """Ask why steps wait that have waited for long; nothing is asked when there are none."""
        if self.task and not self.task.finished and not self.stopping:
            self.waits = await WaitReasons.of(self._tasks, self.task_uuid, list(self.steps.values()), self.now())

    def why(self, step: StepProgress) -> str:
        """The sentence about a step that has waited for long; '' of others, and when the task has ended."""
        return "" if self.task is None or self.task.finished else self.waits.why(step, self.now())

    def now(self) -> datetime:
        """The time by the database's clock."""
        assert self.task is not None
        return self.task.at + timedelta(seconds=time.monotonic() - self._polled_at)
