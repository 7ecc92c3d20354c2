"""State of a running task as it is read repeatedly, and the reasons why its steps wait."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tasker.views.progress import StepProgress, TaskProgress

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import TaskService
    from tasker.views.explanation import Explained

PATIENCE = timedelta(seconds=3)
"""Waiting time after which a step is explained."""
NAMED = 100
"""Maximum number of steps per reason that are named; the others are matched by their template step."""
OPEN: Final = frozenset(
    {
        "pending",
        "enqueued",
        "in_progress",
        "waiting_for_retry",
        "enqueued_for_orchestration",
        "enqueued_as_error_for_orchestration",
    }
)
SEEN: Final = frozenset({"waits", "running", "failed", "not_created", "unevaluated"})
"""Reasons that a view does not print, because the tree shows them."""


class WaitReasons:
    """Reasons why steps of a task wait."""

    def __init__(self, reasons: Sequence[Explained] = ()) -> None:
        self.reasons = reasons
        self._by_step = {name: reason for reason in reversed(reasons) for name in reason.steps}
        self._by_template = {name: reason for reason in reversed(reasons) for name in reason.of}

    @classmethod
    async def of(cls, tasks: TaskService, task_uuid: str, steps: Sequence[StepProgress], now: datetime) -> WaitReasons:
        """Query the reasons if one of the steps has waited for long. Raises as `Tasks.explain`."""
        if not any(_has_waited(step, now) for step in steps):
            return cls()
        explanation = await tasks.explain(task_uuid, names=NAMED)
        return cls(
            [reason for reason in explanation.reasons if reason.reason not in SEEN and _is_old(reason.since, now)]
        )

    def why(self, step: StepProgress, now: datetime) -> str:
        """Return the reason why a step has waited for long, else ''."""
        if not _has_waited(step, now):
            return ""
        reason = self._by_step.get(step.name) or self._by_template.get(step.template_step)
        return reason.sentence() if reason else ""


class WaitChanges:
    """Filter for line-by-line views that reports each reason once per template step."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def among(self, reasons: Sequence[Explained]) -> list[Explained]:
        """Return the reasons that are new for one of their steps; a reason counts as new again after it has
        disappeared.
        """
        now = {name: reason.reason for reason in reversed(reasons) for name in reason.of}
        new_reasons = [
            reason
            for reason in reasons
            if any(self._told.get(name) != reason.reason == now[name] for name in reason.of)
        ]
        self._told = now
        return new_reasons


def _has_waited(step: StepProgress, now: datetime) -> bool:
    return step.state in OPEN and _is_old(step.at, now)


def _is_old(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since >= PATIENCE


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
