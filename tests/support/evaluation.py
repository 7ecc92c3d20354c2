"""Where a task goes after a write that changed its steps (rule 10), as Python decides it: the SQL must be equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tasker.engine.states import task as evaluate
from tasker.engine.states.task import TaskState, task_path, task_target

OnBlocked = Literal["give_up", "wait"]


@dataclass(frozen=True, slots=True)
class StepCounts(evaluate.StepCounts):
    """A task's steps after a write."""

    enqueued_now: int = 0
    """Of `active`: what this very write enqueued or handed over."""


def evaluate_task(state: TaskState, counts: StepCounts, on_blocked: OnBlocked = "give_up") -> list[TaskState]:
    """The states that the task passes through now, without the one it is in; [] when it stays.

    The way is the shortest legal one; when steps became ready it always leads through `enqueuing_steps`. A permanent
    failure stops the task only when nothing else can run; then `on_blocked` says whether it gives up (`error`) or
    waits for a person. `error` is evaluated like an open state: the engine asks only after an operator's repair. The
    other final states answer [].
    """
    return list(task_path(state, task_target(state, counts, counts.enqueued_now, on_blocked)) or ())
