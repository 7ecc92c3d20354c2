"""What a schema marks as `x-sensitive` is shown where it is asked for. A server shows it to whom it permits that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.services.reports import TaskReport

SHOW_SENSITIVE = click.option(
    "--show-sensitive", is_flag=True, help="Also values that a schema marks as x-sensitive; they are hidden otherwise."
)


async def covered(app: Fleet, task: str, answer: Any, show_sensitive: bool) -> Any:
    """Plain data about a task, without its sensitive values unless they are to be shown."""
    veil = None if show_sensitive else await app.sensitive_values.veil(task, ())
    return answer if veil is None else veil.over(answer)


async def covered_report(app: Fleet, report: TaskReport, show_sensitive: bool) -> TaskReport:
    """The same of a report."""
    veil = None if show_sensitive else await app.sensitive_values.veil(report.task_uuid, ())
    if veil is None:
        return report
    steps = {
        name: replace(step, result=veil.result(name, step.result), failures=veil.over(step.failures))
        for name, step in report.steps.items()
    }
    return replace(report, context=veil.context(report.context), steps=steps)
