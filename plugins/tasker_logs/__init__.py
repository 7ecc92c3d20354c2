"""Journal of the events of a process: a line of JSON for each attempt, end of a task, breaker, repair. Named `logs`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tasker.plugins.hook_arguments import (
    AttemptEnded,
    AttemptStarted,
    BreakerChanged,
    ClaimsThrottled,
    ProcessInfo,
    SweepRepaired,
    TaskFinished,
    TasksSubmitted,
)
from tasker.plugins.hooks import hookimpl
from tasker_logs.lines import Initialized, line

if TYPE_CHECKING:
    from tasker.settings.table import Table
    from tasker_logs.journal import Journal

__all__ = ["Logs"]
STARTS = ("tasker_attempt_started", "tasker_tasks_submitted")


class Logs:
    """Plugin that writes the journal. `tasker_logs.lines` defines the line of each event."""

    def __init__(self) -> None:
        self._journal: Journal | None = None
        self._starts = False

    @hookimpl
    def tasker_settings(self) -> type[Table]:
        """Return the settings model of `[plugins.logs]`."""
        from tasker_logs.table import LogsTable

        return LogsTable

    @hookimpl
    def tasker_configured(self, settings: Any) -> Collection[str]:
        """Open the journal; ignore the starts of attempts and tasks unless the settings include them.

        Raises `OSError` for a file that cannot be written.
        """
        from tasker_logs.journal import Journal

        self._journal, self._starts = Journal(settings.path), settings.starts
        return () if self._starts else STARTS

    @hookimpl
    def tasker_process_started(self, process: ProcessInfo) -> None:
        self._write("Process started", process)

    @hookimpl
    def tasker_process_stopped(self, process: ProcessInfo) -> None:
        self._write("Process stopped", process)

    @hookimpl
    def tasker_batch_delivered(self) -> None:
        """Write the buffered lines together."""
        if self._journal is not None:
            self._journal.flush()

    @hookimpl
    def tasker_tasks_submitted(self, submitted: TasksSubmitted) -> None:
        """Write a line for each task if the settings include starts."""
        for task in submitted.tasks if self._starts else ():
            entry = Initialized(task.task_uuid, submitted.namespace, submitted.template)
            self._write(f"Task initialized: task_uuid={task.task_uuid}", entry)

    @hookimpl
    def tasker_attempt_started(self, attempt: AttemptStarted) -> None:
        """Write a line if the settings include starts: there are as many as attempts."""
        if self._starts:
            self._write(f"Step claimed: step_uuid={attempt.step_uuid}", attempt)

    @hookimpl
    def tasker_attempt_ended(self, ended: AttemptEnded) -> None:
        """Write a line with the outcome, the duration and the error."""
        word = "completed" if ended.end == "succeeded" else ended.end
        self._write(f"Step {word}: step_uuid={ended.attempt.step_uuid}", ended)

    @hookimpl
    def tasker_task_finished(self, task: TaskFinished) -> None:
        self._write(f"Task finalized: task_uuid={task.task_uuid}", task)

    @hookimpl
    def tasker_breaker_changed(self, breaker: BreakerChanged) -> None:
        self._write("Circuit breaker changed", breaker)

    @hookimpl
    def tasker_claims_throttled(self, claims: ClaimsThrottled) -> None:
        self._write("Claims held", claims)

    @hookimpl
    def tasker_sweep_repaired(self, repaired: SweepRepaired) -> None:
        self._write("Repaired", repaired)

    def _write(self, message: str, value: Any) -> None:
        if self._journal is not None:
            self._journal.add(line(message, value))
