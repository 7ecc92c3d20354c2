"""Reasons why steps wait for long, as in `tasker task explain`, for live views."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tasker.services.progress import StepProgress

if TYPE_CHECKING:
    from tasker.cli.place.fleet import TaskService
    from tasker.services.explain.explanation import Explained

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
        self._by_step = {name: each for each in reversed(reasons) for name in each.steps}
        self._by_template = {name: each for each in reversed(reasons) for name in each.of}

    @classmethod
    async def of(cls, tasks: TaskService, task_uuid: str, steps: Sequence[StepProgress], now: datetime) -> WaitReasons:
        """Query the reasons if one of the steps has waited for long. Raises as `Tasks.explain`."""
        if not any(_has_waited(step, now) for step in steps):
            return cls()
        found = await tasks.explain(task_uuid, names=NAMED)
        return cls([each for each in found.reasons if each.reason not in SEEN and _is_old(each.since, now)])

    def why(self, step: StepProgress, now: datetime) -> str:
        """Return the reason why a step has waited for long, else ''."""
        if not _has_waited(step, now):
            return ""
        each = self._by_step.get(step.name) or self._by_template.get(step.template_step)
        return each.sentence() if each else ""


class WaitChanges:
    """Filter for line-by-line views that reports each reason once per template step."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def among(self, reasons: Sequence[Explained]) -> list[Explained]:
        """Return the reasons that are new for one of their steps; a reason counts as new again after it has
        disappeared.
        """
        now = {name: each.reason for each in reversed(reasons) for name in each.of}
        found = [each for each in reasons if any(self._told.get(name) != each.reason == now[name] for name in each.of)]
        self._told = now
        return found


def _has_waited(step: StepProgress, now: datetime) -> bool:
    return step.state in OPEN and _is_old(step.at, now)


def _is_old(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since >= PATIENCE
