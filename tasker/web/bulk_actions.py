"""Actions on many tasks, and their progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from tasker.api.program import ServerServices
from tasker.contracts.dataclasses import dataclass
from tasker.contracts.rules.permissions import Permission
from tasker.errors import StateMachineError
from tasker.lifecycle.machines.task import TERMINAL
from tasker.services.operators.reruns import where_to_begin
from tasker.services.wording import counted

MOST_TASKS = 1000
"""Maximum number of tasks of one bulk action; further ones need another bulk action."""
PORTION = 25
"""Number of tasks processed per request."""


class Action(StrEnum):
    RETRY = "retry"
    RERUN = "rerun"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """Action with its texts; `suits` returns whether it applies to a task."""

    action: Action
    title: str
    effect: str
    permission: Permission
    suits: Callable[[Mapping[str, Any]], bool]
    act: Callable[[ServerServices, str, str, str], Awaitable[str]]
    danger: bool = False

    def command(self, tasks: Iterable[str]) -> str:
        """Return the shell command that does the same to these tasks one by one; a refused task does not stop the
        others."""
        return f"echo {' '.join(tasks)} | xargs -n 1 tasker task {self.action} --reason '...'"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of the action on one task."""

    task: str
    words: str
    done: bool


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """Progress of a bulk action; `latest` are the outcomes of the last portion, `left` the remaining tasks."""

    total: int
    succeeded: int
    refused: int
    last_refused: str
    latest: Sequence[Outcome]
    left: Sequence[str]

    def plus(self, outcomes: Sequence[Outcome], left: Sequence[str]) -> BulkProgress:
        """Return the progress after one more portion."""
        refused = [each for each in outcomes if not each.done]
        told = f"{refused[-1].task}: {refused[-1].words}" if refused else self.last_refused
        done = len(outcomes) - len(refused)
        total = self.total or len(outcomes) + len(left)
        return BulkProgress(total, self.succeeded + done, self.refused + len(refused), told, outcomes, left)

    @property
    def dealt_with(self) -> int:
        """Number of processed tasks."""
        return self.succeeded + self.refused


async def retry(program: ServerServices, task: str, actor: str, reason: str) -> str:
    """Run every failed step of a task again. Raises `StateMachineError` if no step has failed."""
    found = await program.steps.retry(task, actor=actor, reason=reason)
    if not found.reset:
        raise StateMachineError("it has no failed steps")
    return f"{counted(len(found.reset), 'step')} will run again"


async def cancel(program: ServerServices, task: str, actor: str, reason: str) -> str:
    await program.tasks.cancel(task, actor=actor, reason=reason)
    return "cancelled"


async def rerun(program: ServerServices, task: str, actor: str, reason: str) -> str:
    """Run a task again as a new one, from its first failed step or, if none failed, from its first step."""
    first = where_to_begin(await program.tasks.report(task))
    found = await program.reruns.start(task, first, actor=actor, reason=reason)
    return f"again from {first}: {found.task_uuid}"


def _has_failed(task: Mapping[str, Any]) -> bool:
    return bool(task["failed_steps"]) and task["status"] != "cancelled"


def _has_ended(task: Mapping[str, Any]) -> bool:
    return task["status"] in TERMINAL


ACTIONS = {
    Action.RETRY: BulkRequest(
        Action.RETRY,
        "Retry failed steps",
        "Every failed step of these tasks runs again, its attempts counted from zero.",
        Permission.STEPS_RESOLVE,
        _has_failed,
        retry,
    ),
    Action.RERUN: BulkRequest(
        Action.RERUN,
        "Run again as new tasks",
        "A new task for each of these runs what failed and what is below it; where nothing failed, everything. "
        "These stay as they are.",
        Permission.TASKS_CREATE,
        _has_ended,
        rerun,
    ),
    Action.CANCEL: BulkRequest(
        Action.CANCEL,
        "Cancel",
        "Every step of these tasks that has not ended is cancelled. This cannot be undone.",
        Permission.TASKS_CANCEL,
        lambda task: not _has_ended(task),
        cancel,
        danger=True,
    ),
}
