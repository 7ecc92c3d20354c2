"""A task as its page shows it: how far it is, rows of its steps, commands that do what the page does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from shlex import quote

from tasker.contracts.dataclasses import dataclass
from tasker.lifecycle.machines.step import SATISFYING, StepState
from tasker.services.folding import folded, span
from tasker.services.listings import Pause
from tasker.services.reports import StepReport, TaskReport
from tasker.services.wording import URGENCY, duration

RESOLVABLE = frozenset(
    {
        StepState.PENDING,
        StepState.ENQUEUED,
        StepState.IN_PROGRESS,
        StepState.ENQUEUED_FOR_ORCHESTRATION,
        StepState.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION,
        StepState.WAITING_FOR_RETRY,
        StepState.ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class ShownSteps:
    """A task at a moment; `pause` is that of the task itself, whether it holds a step by now or not."""

    report: TaskReport
    now: datetime
    pause: Pause | None = None

    @property
    def done(self) -> int:
        """Steps that what depends on them may rely on."""
        return sum(step.state in SATISFYING for step in self.report.steps.values())

    @property
    def percent(self) -> int:
        """The same in percent of all steps."""
        return round(100 * self.done / len(self.report.steps)) if self.report.steps else 0

    @property
    def lasted(self) -> str:
        """Since its submission, until its end."""
        end = self.report.completed_at or self.now
        return duration(max(0.0, (end - self.report.created_at).total_seconds() * 1000))


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, or all instances of a batch worker; `first` is the one that its link leads to."""

    name: str
    first: StepReport
    state: str
    count: int
    done: int
    failed: Sequence[str]

    @property
    def lasted(self) -> str:
        """The time of its last attempt; of many nothing."""
        return duration(self.first.duration_ms) if self.count == 1 else ""

    @property
    def says(self) -> str:
        """Why it failed, in a line."""
        error = self.first.error if self.count == 1 else None
        return f"{error['type']}: {error['message']}" if error else ""


def rows_of(report: TaskReport) -> list[StepRow]:
    """The steps in topological order, many instances of a batch worker as one row."""
    return [_row(steps) for steps in folded(list(report.steps.values()))]


def _row(steps: Sequence[StepReport]) -> StepRow:
    worst = min(steps, key=lambda step: URGENCY.index(step.state))
    name = steps[0].name if len(steps) == 1 else span([step.name for step in steps])
    done = sum(step.state in SATISFYING for step in steps)
    failed = [step.name for step in steps if step.state == StepState.ERROR]
    return StepRow(name, worst, worst.state, len(steps), done, failed)


def commands_of(report: TaskReport) -> dict[str, str]:
    """The commands that do to a task what its page does."""
    task = report.task_uuid
    return {
        "show": f"tasker task show {task}",
        "explain": f"tasker task explain {task}",
        "history": f"tasker task history {task}",
        "logs": f"tasker task logs {task}",
        "retry": f"tasker task retry {task} --reason '...'",
        "cancel": f"tasker task cancel {task} --reason '...'",
        "pause": f"tasker pause --task {task} --reason '...'",
        "resume": f"tasker resume --task {task}",
    }


def step_commands(task: str, step: StepReport) -> dict[str, str]:
    """The commands that do to a step what its page does."""
    name = quote(step.name)
    return {
        "reset": f"tasker task step reset {task} {name} --reason '...'",
        "resolve": f"tasker task step resolve {task} {name} --reason '...'",
        "complete": f"tasker task step complete {task} {name} --result '{{...}}' --reason '...'",
        "rerun": f"tasker task rerun {task} --from {name} --reason '...'",
        "logs": f"tasker task logs {task} --step {name}",
        "show": f"tasker task step show {task} {name}",
    }


def may_resolve(step: StepReport) -> bool:
    """Whether a person may take it as done."""
    return step.state in RESOLVABLE
