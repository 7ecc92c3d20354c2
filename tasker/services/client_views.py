"""Tasks and steps as plain data in the clients' format: flat, with progress, times as ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tasker.db.queries import query
from tasker.errors import StepNotFound, TaskerError, TaskNotFound, UsageError
from tasker.lifecycle.evaluate import (
    StepCounts,
    completion_percentage,
    execution_status,
    health_status,
    recommended_action,
)
from tasker.lifecycle.machines.step import StepState
from tasker.services.engine.calls import Engine
from tasker.services.task_filter import Count, TaskFilter, TaskLists
from tasker.services.tasks import checked, not_found

View = dict[str, Any]

COUNTED = 10_000
"""Maximum number of tasks counted for a page; if there are more, `total_count` is this number."""

COUNTS = ("total", "done", "failed", "cancelled", "active", "retrying", "held")
TASK = query("client", "task").format(task=query("client", "tasks"), steps=query("client", "steps"))
"""SQL that reads a task and its steps in one snapshot."""


class ClientViews:
    """Reads for clients. Ids are text; a malformed one raises `UsageError`."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._lists = engine, TaskLists(engine.connection)

    async def task(self, task_uuid: str, *, limit: int | None = None, offset: int = 0) -> View:
        """One task with its steps, or with a page of them; `more_steps` follow. Raises `TaskNotFound`."""
        task = checked(task_uuid)
        params = {"tasks": [task], "task": task, "step": None, "results": False, "limit": limit, "offset": offset}
        ((found, steps),) = await self._engine.connection.execute(TASK, params)
        if found is None:
            raise TaskNotFound(f"no task {task_uuid} in this database")
        view = _task(found)
        more = max(0, view["total_steps"] - offset - len(steps))
        return {**view, "steps": [_readiness(_step(step)) for step in steps], "more_steps": more}

    async def namespace(self, task_uuid: str) -> str:
        """Return the namespace of a task. Raises `TaskNotFound`."""
        rows = await self._query("namespace", task=checked(task_uuid))
        if not rows:
            raise not_found(task_uuid)
        return str(rows[0][0])

    async def tasks(
        self, *, limit: int = 50, offset: int = 0, namespace: str | None = None, status: str | None = None
    ) -> View:
        """Return a page of tasks without their steps, the newest first: `tasks` and `pagination` (counts up to
        10,000)."""
        found = await self.page(TaskFilter(namespace, status), limit=limit, offset=offset)
        count = await self.count(TaskFilter(namespace, status))
        return {"tasks": found, "pagination": _pagination(limit, offset, count.number)}

    async def page(
        self, which: TaskFilter, *, limit: int, offset: int = 0, after: str | None = None, oldest_first: bool = False
    ) -> list[View]:
        """Return the matching tasks without their steps, by creation time, starting after the task `after`."""
        if limit < 1 or offset < 0:
            raise UsageError(f"limit {limit} and offset {offset}", hint="limit is at least 1, offset at least 0")
        place = after and checked(after)
        page = await self._lists.page(which, limit=limit, offset=offset, after=place, oldest_first=oldest_first)
        tasks = await self._tasks(page)
        return tasks[::-1] if oldest_first else tasks

    async def part(
        self, which: TaskFilter, *, limit: int, offset: int = 0, after: str | None = None, oldest_first: bool = False
    ) -> tuple[list[View], str | None]:
        """The same, and the task behind which others may match where the page could not be filled at a bounded cost."""
        place = after and checked(after)
        part = await self._lists.part(which, limit=limit, offset=offset, after=place, oldest_first=oldest_first)
        tasks = await self._tasks(part.tasks)
        return (tasks[::-1] if oldest_first else tasks), part.read_to

    async def some(self, task_uuids: Sequence[str]) -> list[View]:
        """Return those of these tasks that exist, without their steps, the newest first."""
        return await self._tasks([checked(each) for each in task_uuids])

    async def count(self, which: TaskFilter) -> Count:
        """Return the number of matching tasks, counted to 10,000. A common tag, initiator or source combined with other
        filters is counted among the newest 10,000 tasks that match those filters."""
        return await self._lists.counted(which, COUNTED)

    async def inputs_are_indexed(self) -> bool:
        """Return True if fields of the input find all tasks, not only the newest."""
        return await self._lists.inputs_are_indexed()

    async def steps(self, task_uuid: str, *, limit: int | None = None, offset: int = 0) -> list[View]:
        """The steps of a task in topological order, or a page of them. Raises `TaskNotFound`."""
        return await self._steps(task_uuid, None, limit=limit, offset=offset)

    async def step(self, task_uuid: str, step_uuid: str) -> View:
        """Return one step of a task. Raises `TaskNotFound`, `StepNotFound`."""
        return (await self._steps(task_uuid, checked(step_uuid)))[0]

    async def audit(self, task_uuid: str, step_uuid: str | None = None) -> list[View]:
        """Return the stored results of a step, or of every step of a task, each with its worker, the newest first.

        Raises `TaskNotFound`, `StepNotFound`.
        """
        step = None if step_uuid is None else checked(step_uuid)
        await self._steps(task_uuid, step)
        rows = await self._query("audit", task=checked(task_uuid), step=step)
        return [_with_utc(row) for (row,) in rows]

    async def health(self) -> View:
        """Return whether the database and the messaging backend answer: `healthy`, `status`, `timestamp`,
        `components`."""
        components = {"database": "unhealthy", "messaging": "unhealthy"}
        now = datetime.now(UTC)
        try:
            ((now,),) = await self._query("health")
            components["database"] = "healthy"
            components["messaging"] = "healthy" if await self._engine.messaging.health_check() else "unhealthy"
        except TaskerError as error:
            components["error"] = str(error)
        healthy = set(components.values()) == {"healthy"}
        status = "healthy" if healthy else "unhealthy"
        return {"healthy": healthy, "status": status, "timestamp": _iso(now), "components": components}

    async def _tasks(self, tasks: Sequence[str]) -> list[View]:
        return [_task(row) for (row,) in await self._query("tasks", tasks=list(tasks))]

    async def _steps(
        self, task_uuid: str, step_uuid: str | None, *, limit: int | None = None, offset: int = 0
    ) -> list[View]:
        task = checked(task_uuid)
        rows = await self._query("steps", task=task, step=step_uuid, results=True, limit=limit, offset=offset)
        if not rows:
            if not await self._tasks([task]):
                raise TaskNotFound(f"no task {task_uuid} in this database")
            if offset:
                return []
            raise StepNotFound(f"task {task_uuid} has no step {step_uuid}")
        return [_step(row) for (row,) in rows]

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("client", name), params)


def _task(row: View) -> View:
    total, done, failed, cancelled, active, retrying, held = (row.pop(name) for name in COUNTS)
    counts = StepCounts(total, done, failed, cancelled, active, retrying, held)
    return {
        **_with_utc(row),
        "total_steps": total,
        "pending_steps": total - done - failed - cancelled - active - retrying,
        "in_progress_steps": active,
        "completed_steps": done,
        "failed_steps": failed,
        "ready_steps": held,
        "execution_status": str(execution_status(counts)),
        "recommended_action": recommended_action(counts),
        "completion_percentage": completion_percentage(counts),
        "health_status": health_status(counts),
    }


def _step(row: View) -> View:
    unmet, due, retryable, _ = (row.pop(name) for name in ("unmet", "due", "retryable", "ordinal"))
    waits = row["current_state"] in (StepState.PENDING, StepState.WAITING_FOR_RETRY)
    eligible = row["attempts"] == 0 or (retryable and row["attempts"] < row["max_attempts"])
    return {
        **_with_utc(row),
        "dependencies_satisfied": unmet == 0,
        "completed_parents": row["total_parents"] - unmet,
        "retry_eligible": eligible,
        "ready_for_execution": waits and unmet == 0 and due and eligible,
    }


def _readiness(step: View) -> View:
    """Return the step as listed in its task, without its result."""
    rest = {key: value for key, value in step.items() if key not in ("step_uuid", "results", "completed_at")}
    return {"workflow_step_uuid": step["step_uuid"], **rest}


def _pagination(limit: int, offset: int, count: int) -> View:
    page, pages = offset // limit, -(-count // limit)
    return {
        "page": page,
        "per_page": limit,
        "total_count": count,
        "total_pages": pages,
        "has_next": offset + limit < count,
        "has_previous": offset > 0,
    }


def _with_utc(row: View) -> View:
    """Return the document with its times in UTC, whatever the session's time zone."""
    return {key: _utc(value) if key.endswith(("_at", "_until")) else value for key, value in row.items()}


def _utc(time: str | None) -> str | None:
    return None if time is None else _iso(datetime.fromisoformat(time))


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()
