"""Reads over HTTP that take several requests: long lists, reports and histories."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal, TypedDict, Unpack

from tasker.client.calls.operations import OperationCalls
from tasker.operations.tasks import MOST_STEPS, TaskOperations
from tasker.views.task_lists import TaskSummary, TransitionDetail
from tasker.views.tasks import StepReport, TaskReport

HISTORY_PAGE = 1000
"""Transitions of one answer."""
REPORT_PAGE = MOST_STEPS
"""Steps of one answer."""
LIST_PAGE = 1000
"""Tasks of one answer at most."""


class SummaryFilters(TypedDict, total=False):
    """Filters of a list of tasks; `until` is the exclusive end of the creation time."""

    namespace: str | None
    template: str | None
    status: str | None
    since: datetime | None
    tags: tuple[str, ...]
    version: str | None
    initiator: str | None
    source_system: str | None
    tenant: str | None
    outcome: Literal["partial", "compensating", "compensated", "compensation_failed"] | None
    correlation_id: str | None
    idempotency_key: str | None
    fingerprint: str | None
    until: datetime | None
    open: bool
    oldest_first: bool
    field: str | None


class OperatorCalls(OperationCalls, TaskOperations):
    """Calls for operators. Those on one task raise `TaskNotFound`."""

    async def list_tasks_briefly(
        self, *, limit: int = 50, offset: int = 0, **which: Unpack[SummaryFilters]
    ) -> list[TaskSummary]:
        """Tasks, the newest first, with the numbers of their steps and what holds them; created `since` then.

        More than 1,000 are read page by page.
        """
        tasks: list[TaskSummary] = []
        while len(tasks) < limit:
            most = min(limit - len(tasks), LIST_PAGE)
            page = await self.list_task_summaries(**which, limit=most, offset=offset + len(tasks))
            tasks += page
            if len(page) < most:
                break
        return tasks

    async def get_task_report(self, task_uuid: str) -> TaskReport:
        """A task with all that is known of its steps: results, each failed attempt, what they wait for.

        Read page by page; the task is as its last page has it.
        """
        steps: dict[str, StepReport] = {}
        while True:
            page = await self.get_report_page(task_uuid, limit=REPORT_PAGE, offset=len(steps))
            steps |= page.steps
            if not page.more_steps or not page.steps:
                return replace(page, steps=steps)

    async def get_task_history(self, task_uuid: str) -> list[TransitionDetail]:
        """Return every transition of a task and its steps in order, with actor and reason; reads all pages."""
        history: list[TransitionDetail] = []
        while len(history) % HISTORY_PAGE == 0:
            page = await self.get_history_page(task_uuid, limit=HISTORY_PAGE, offset=len(history))
            if not page:
                break
            history += page
        return history
