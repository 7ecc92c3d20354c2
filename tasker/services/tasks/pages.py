"""Parts of a task for the page that shows it: each costs what it shows, however many steps the task has."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.states.task import StepCounts
from tasker.services.tasks.read import Tasks, checked, not_found, report_of
from tasker.services.viewer import Redaction, Reports, Viewed
from tasker.views.tasks import TaskReport, stored_report

PAGE, NAMED = report_of(query("tasks", "slice_of_steps")), report_of(query("tasks", "named_steps"))


def reports_of(engine: Engine) -> Reports:
    """Return the reads in which a redaction looks for sensitive values."""
    tasks, pages = Tasks(engine), TaskPages(engine.connection)

    async def read(task_uuid: str, names: Collection[str] | None) -> TaskReport:
        return await (tasks.report(task_uuid) if names is None else pages.steps(task_uuid, names))

    return read


class TaskPages(Viewed):
    """Reads of parts of a task. Each raises `TaskNotFound`, and `UsageError` for a malformed id."""

    def __init__(self, connection: Statements, redaction: Redaction | None = None) -> None:
        self._connection, self._redaction = connection, redaction

    async def counts(self, task_uuid: str) -> StepCounts:
        """Return the numbers of the task's steps, without reading a step."""
        rows = await self._connection.execute(query("tasks", "counts"), {"task": checked(task_uuid)})
        if not rows:
            raise not_found(task_uuid)
        return StepCounts(*rows[0])

    async def page(self, task_uuid: str, *, limit: int, offset: int) -> TaskReport:
        """Return the task with a page of its steps in the order of their creation."""
        task = checked(task_uuid)
        return await self._report(PAGE, {"task": task, "after": task, "limit": limit, "offset": offset})

    async def steps(self, task_uuid: str, names: Collection[str]) -> TaskReport:
        """Return the task with those of its steps that have these names."""
        return await self._report(NAMED, {"task": checked(task_uuid), "steps": list(names)})

    async def step(self, task_uuid: str, name: str, *, inputs: int) -> TaskReport:
        """Return the task with one step, if it has it, and the first `inputs` of the steps that it depends on."""
        report = await self.steps(task_uuid, [name])
        above = report.steps[name].depends_on[:inputs] if name in report.steps else ()
        if not above:
            return report
        return replace(report, steps={**(await self.steps(task_uuid, above)).steps, **report.steps})

    async def first_failure(self, task_uuid: str) -> TaskReport:
        """Return the task with its first failed step; without one if it failed behind a thousand failed attempts."""
        rows = await self._connection.execute(query("tasks", "first_failed"), {"task": checked(task_uuid)})
        return await self.steps(task_uuid, [name for (name,) in rows])

    async def _report(self, statement: str, params: dict[str, Any]) -> TaskReport:
        rows = await self._connection.execute(statement, params)
        if not rows:
            raise not_found(params["task"])
        return await self._shown(params["task"], stored_report(rows[0][0], before=params.get("offset", 0)))
