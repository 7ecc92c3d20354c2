"""What a person does next: commands that can be copied, fit to how a task ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from tasker.errors.traceback_text import traceback_of

if TYPE_CHECKING:
    from tasker.services.reports import TaskReport


def resume_command(task_uuid: str, database: str, target: str | None = None, handlers: Sequence[str] = ()) -> str:
    """The command that goes on with a task here. `database` are the options that name it."""
    sources = "".join(f" --handlers {quote(handler)}" for handler in handlers)
    folder = f" {quote(target)}" if target else ""
    return f"tasker run{folder} --resume {task_uuid}{sources}{database}"


def watch_command(task_uuid: str, database: str) -> str:
    """The command that shows how others go on with a task."""
    return f"tasker task watch {task_uuid}{database}"


def going_on(task_uuid: str, arguments: str, *, here: bool) -> list[str]:
    """Lines with the commands for a task that goes on: with workers, and `here` where the database can be reached."""
    told = [f"  {watch_command(task_uuid, arguments)}"]
    if not here:
        return ["to watch it, where workers serve it:", *told]
    return [
        "to watch it, where workers serve it, or to go on with it here:",
        *told,
        f"  {resume_command(task_uuid, arguments)}",
    ]


def next_text(report: TaskReport, database: str, go_on: str) -> str:
    """What to do about a task that did not succeed, empty for one that did; `go_on` is the command after mending."""
    return "\n".join(_next(report, database, go_on))


def _next(report: TaskReport, database: str, go_on: str) -> Iterator[str]:
    if report.status == "cancelled":
        yield "\nTo see who cancelled it, when and why:"
        yield f"  tasker task history {report.task_uuid}{database}"
    elif not report.succeeded and report.finished:
        yield "\nTo see all of it:"
        yield f"  tasker task show {report.task_uuid}{_traceback(report)}{database}"
        yield "To let what failed run again when the cause is mended, and go on:"
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
