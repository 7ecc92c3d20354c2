"""Operator calls over HTTP: task lists, reports, logs, audit, retry and rerun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection

HISTORY_PAGE = 1000
"""Transitions of one answer."""
REPORT_PAGE = 1000
"""Steps of one answer."""
LIST_PAGE = 1000
"""Tasks, or refused messages, of one answer at most."""


class MoreFilters(TypedDict, total=False):
    """Less common filters of a list of tasks; `until` (ISO 8601) is the exclusive end of the creation time."""

    version: str | None
    initiator: str | None
    source_system: str | None
    tenant: str | None
    correlation_id: str | None
    idempotency_key: str | None
    fingerprint: str | None
    until: str | None
    open: bool
    oldest_first: bool


class OperatorCalls:
    """Calls for operators. Results are plain data as described by the OpenAPI document.

    Calls on one task raise `TaskNotFound`.
    """

    connection: HttpConnection
    initiator: str

    async def list_tasks_briefly(
        self,
        *,
        namespace: str | None = None,
        template: str | None = None,
        status: str | None = None,
        since: str | None = None,
        tags: Sequence[str] = (),
        limit: int = 50,
        offset: int = 0,
        **more: Unpack[MoreFilters],
    ) -> list[dict[str, Any]]:
        """Tasks, the newest first, with the numbers of their steps and what holds them; created `since` then.

        More than 1,000 are read page by page.
        """
        which = {"namespace": namespace, "template": template, "status": status, "since": since, "tag": list(tags)}
        tasks: list[dict[str, Any]] = []
        while len(tasks) < limit:
            most = min(limit - len(tasks), LIST_PAGE)
            params = {**which, **more, "limit": most, "offset": offset + len(tasks)}
            page = await self.connection.get("/v1/listings/tasks", params)
            tasks += page
            if len(page) < most:
                break
        return tasks

    async def list_identifiers(self, beginning: str, *, limit: int = 10) -> list[str]:
        """Return the identifiers of tasks that start with these hexadecimal digits, newest first."""
        params = {"beginning": beginning, "limit": limit}
        return list(await self.connection.get("/v1/listings/identifiers", params))

    async def list_refused_messages(self, *, queue: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """Return quarantined messages of one queue or all, with the reason, the newest first."""
        return list(await self.connection.get("/v1/refused-messages", {"queue": queue, "limit": limit}))

    async def get_task_report(self, task_uuid: str) -> dict[str, Any]:
        """A task with all that is known of its steps: results, each failed attempt, what they wait for.

        Read page by page; the task is as its last page has it.
        """
        steps: dict[str, Any] = {}
        while True:
            params = {"limit": REPORT_PAGE, "offset": len(steps)}
            page = dict(await self.connection.get(path("/v1/tasks", task_uuid, "report"), params))
            steps |= page["steps"]
            if not page["more_steps"] or not page["steps"]:
                return {**page, "steps": steps}

    async def get_task_history(self, task_uuid: str) -> list[dict[str, Any]]:
        """Return every transition of a task and its steps in order, with actor and reason; reads all pages."""
        history: list[dict[str, Any]] = []
        while len(history) % HISTORY_PAGE == 0:
            params = {"limit": HISTORY_PAGE, "offset": len(history)}
            page = await self.connection.get(path("/v1/tasks", task_uuid, "history"), params)
            if not page:
                break
            history += page
        return history

    async def get_task_progress(self, task_uuid: str, since: str | None = None) -> dict[str, Any]:
        """Return the progress of a task, with the steps that run or have changed since `since`."""
        return dict(await self.connection.get(path("/v1/tasks", task_uuid, "progress"), {"since": since}))

    async def get_task_logs(
        self,
        task_uuid: str,
        *,
        step: str | None = None,
        attempt: int | None = None,
        level: str | None = None,
        since: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the lines that the handlers of a task logged or printed; `after` is the `place` of a line."""
        which = {"step": step, "attempt": attempt, "level": level, "since": since, "after": after, "limit": limit}
        return list(await self.connection.get(path("/v1/tasks", task_uuid, "logs"), which))

    async def get_task_template(self, task_uuid: str) -> dict[str, Any]:
        """Return the compiled template that a task is pinned to."""
        return dict(await self.connection.get(path("/v1/tasks", task_uuid, "template")))

    async def get_task_audit(self, task_uuid: str, step_uuid: str | None = None) -> list[dict[str, Any]]:
        """Return the audit records of stored results, of one step or of every step of a task, newest first."""
        parts = ["audit"] if step_uuid is None else ["workflow_steps", step_uuid, "audit"]
        return list(await self.connection.get(path("/v1/tasks", task_uuid, *parts)))

    async def rerun_task(
        self,
        task_uuid: str,
        step: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        changes: Mapping[str, Any] | None = None,
        reason: str = "",
        by: str | None = None,
    ) -> dict[str, Any]:
        """Rerun a task from `step` as a new task that reuses the results of the steps before it.

        Without a step it starts at the first failed step, or at the beginning if none has failed. `context` replaces
        the input; `changes` sets single fields of the input by their paths (`address.zip`).

        The result has the `task_uuid` of the new task, and how many of its `steps` are `reused`.
        """
        body = {
            "from_step": step,
            "context": context,
            "set": changes or {},
            "reason": reason,
            "actor": by or self.initiator,
        }
        return dict(await self.connection.send("POST", path("/v1/tasks", task_uuid, "rerun"), body=body))
