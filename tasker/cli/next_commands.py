"""Suggested next commands, ready to copy, depending on how a task ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from tasker.errors.traceback_text import traceback_of

if TYPE_CHECKING:
    from tasker.services.reports import TaskReport


def resume_command(task_uuid: str, database: str, target: str | None = None, handlers: Sequence[str] = ()) -> str:
    """Return the command that resumes a task here. `database` holds the options that name the database."""
    sources = "".join(f" --handlers {quote(handler)}" for handler in handlers)
    folder = f" {quote(target)}" if target else ""
    return f"tasker run{folder} --resume {task_uuid}{sources}{database}"


def watch_command(task_uuid: str, database: str) -> str:
    """Return the command that watches a task which other processes run."""
    return f"tasker task watch {task_uuid}{database}"


def going_on(task_uuid: str, arguments: str, *, here: bool) -> list[str]:
    """Return lines with the commands for a running task: watch it, and with `here` also resume it in this shell."""
    told = [f"  {watch_command(task_uuid, arguments)}"]
    if not here:
        return ["to watch it (workers run it):", *told]
    return [
        "to watch it (workers run it), or to run it here:",
        *told,
        f"  {resume_command(task_uuid, arguments)}",
    ]


def next_text(report: TaskReport, database: str, go_on: str) -> str:
    """Return advice for a task that did not succeed, '' for one that did; `go_on` is the command after a repair."""
    return "\n".join(_next(report, database, go_on))


def _next(report: TaskReport, database: str, go_on: str) -> Iterator[str]:
    if report.status == "cancelled":
        yield "\nTo see who cancelled it, when and why:"
        yield f"  tasker task history {report.task_uuid}{database}"
    elif not report.succeeded and report.finished:
        yield "\nTo see all details:"
        yield f"  tasker task show {report.task_uuid}{_traceback(report)}{database}"
        yield "To retry the failed steps once the cause is fixed, and resume:"
        yield f"  {_again(report, database)}"
        yield f"  {go_on}"


def _again(report: TaskReport, database: str) -> str:
    failed = report.failed_steps
    if len(failed) == 1:
        return f"tasker task step reset {report.task_uuid} {quote(failed[0].name)}{database}"
    return f"tasker task retry {report.task_uuid}{database}"


def _traceback(report: TaskReport) -> str:
    raised = any(
        traceback_of(failure.get("metadata") or {}) for s in report.failed_steps for failure in s.failures[-1:]
    )
    return " --traceback" if raised else ""
