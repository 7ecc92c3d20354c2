"""What operators look at, over HTTP: tasks as lists and reports have them, how the fleet does, and running again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from tasker.client.http.connection import HttpConnection
from tasker.client.http.paths import path

HISTORY_PAGE = 1000
"""Transitions of one answer."""
REPORT_PAGE = 1000
"""Steps of one answer."""
LIST_PAGE = 1000
"""Tasks, or refused messages, of one answer at most."""


class MoreFilters(TypedDict, total=False):
    """Of a list of tasks, what is seldom asked for; `until` (ISO 8601) is when they were created before."""

    version: str | None
    initiator: str | None
    source_system: str | None
    correlation_id: str | None
    idempotency_key: str | None
    fingerprint: str | None
    until: str | None
    open: bool
    oldest_first: bool


class OperatorCalls:
    """Answers are plain data, as the interface describes them; those of one task raise `TaskNotFound`."""

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
        """The identifiers of tasks that begin so (hexadecimal digits), the newest first."""
        params = {"beginning": beginning, "limit": limit}
        return list(await self.connection.get("/v1/listings/identifiers", params))

    async def list_refused_messages(self, *, queue: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """Messages that nobody could use, of one queue or all, with the reason, the newest first."""
        return list(await self.connection.get("/v1/refused-messages", {"queue": queue, "limit": limit}))

    async def list_operator_actions(
        self, *, actor: str | None = None, since: str | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Who did what by hand, the newest first; at `since` (ISO 8601) or later."""
        params = {"actor": actor, "since": since, "limit": limit}
        return list((await self.connection.get("/v1/operator_actions", params))["actions"])

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
        """Every transition of a task and its steps in order, with who made it and why; read page by page."""
        history: list[dict[str, Any]] = []
        while len(history) % HISTORY_PAGE == 0:
            params = {"limit": HISTORY_PAGE, "offset": len(history)}
            page = await self.connection.get(path("/v1/tasks", task_uuid, "history"), params)
            if not page:
                break
            history += page
        return history

    async def get_task_progress(self, task_uuid: str, since: str | None = None) -> dict[str, Any]:
        """How far a task is, with the steps that changed `since` then or run."""
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
        """What the handlers of a task have logged and printed; `after` is the `place` of a line."""
        which = {"step": step, "attempt": attempt, "level": level, "since": since, "after": after, "limit": limit}
        return list(await self.connection.get(path("/v1/tasks", task_uuid, "logs"), which))

    async def get_task_template(self, task_uuid: str) -> dict[str, Any]:
        """The template that a task is pinned to, as it was compiled."""
        return dict(await self.connection.get(path("/v1/tasks", task_uuid, "template")))

    async def get_task_audit(self, task_uuid: str, step_uuid: str | None = None) -> list[dict[str, Any]]:
        """Who stored which result of a step, or of every step of a task, the newest first."""
        parts = ["audit"] if step_uuid is None else ["workflow_steps", step_uuid, "audit"]
        return list(await self.connection.get(path("/v1/tasks", task_uuid, *parts)))

    async def retry_task(self, task_uuid: str, *, reason: str = "", by: str | None = None) -> dict[str, Any]:
        """Let every failed step of a task run again: the names in `reset`, and in `left` those that may run only once.

        Raises `StateMachineError` for a task that was cancelled.
        """
        body = {"reason": reason, "actor": by or self.initiator}
        return dict(await self.connection.send("POST", path("/v1/tasks", task_uuid, "retry"), body=body))

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
        """Run a task again from `step`, as a new task that reuses what is done above it.

        Without a step it begins with the first that failed, or with the first of all. `context` is another input,
        `changes` are values for single fields of the input, by their paths (`address.zip`).

        Answers `task_uuid` of the new one, and how many of its `steps` are `reused`.
        """
        body = {
            "from_step": step,
            "context": context,
            "set": changes or {},
            "reason": reason,
            "actor": by or self.initiator,
        }
        return dict(await self.connection.send("POST", path("/v1/tasks", task_uuid, "rerun"), body=body))

    async def overview(self) -> dict[str, Any]:
        """Queues, processes, open breakers and templates at this moment."""
        return dict(await self.connection.get("/v1/overview"))

    async def doctor(self) -> dict[str, Any]:
        """What is wrong with the fleet and its database, with what to do."""
        return dict(await self.connection.get("/v1/doctor"))
