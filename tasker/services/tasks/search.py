"""Search by a text that may be the id or name of a task, a dead letter, a template, a namespace or a tag."""

from __future__ import annotations

import string
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.engine.states.step import StepState
from tasker.engine.states.task import (
    StepCounts,
    completion_percentage,
    execution_status,
    health_status,
    recommended_action,
)
from tasker.errors import StepNotFound, TaskerError, TaskNotFound, UsageError
from tasker.services.tasks.lists import Count, TaskFilter, TaskLists
from tasker.services.tasks.read import checked, names, not_found

View = dict[str, Any]

COUNTED = 10_000
"""Maximum number of tasks counted for a page; if there are more, `total_count` is this number."""

COUNTS = ("total", "done", "failed", "cancelled", "active", "retrying", "held")
TASK = query("client", "task").format(task=query("client", "tasks"), steps=query("client", "steps"))
"""SQL that reads a task and its steps in one snapshot."""


class ClientViews:
    """Reads for clients. Ids are text; a malformed one raises `UsageError`."""

    def __init__(self, engine: Engine, plans: PlanStore) -> None:
        self._engine, self._plans, self._lists = engine, plans, TaskLists(engine.connection)

    async def task(self, task_uuid: str, *, limit: int | None = None, offset: int = 0) -> View:
        """One task with its steps, or with a page of them; `more_steps` follow. Raises `TaskNotFound`."""
        task = checked(task_uuid)
        params = {"tasks": [task], "task": task, "step": None, "results": False, "limit": limit, "offset": offset}
        ((row, steps),) = await self._engine.connection.execute(TASK, params)
        if row is None:
            raise TaskNotFound(f"no task {task_uuid} in this database")
        view = _task(row)
        more = max(0, view["total_steps"] - offset - len(steps))
        return {**view, "steps": [_readiness(_step(step)) for step in steps], "more_steps": more}

    async def namespace(self, task_uuid: str) -> str:
        """Return the namespace of a task. Raises `TaskNotFound`."""
        return (await self.owner(task_uuid))[0]

    async def owner(self, task_uuid: str) -> tuple[str, str | None]:
        """Return the namespace and the tenant of a task. Raises `TaskNotFound`."""
        rows = await self._query("namespace", task=checked(task_uuid))
        if not rows:
            raise not_found(task_uuid)
        return rows[0][0], rows[0][1]

    async def tasks(
        self, *, limit: int = 50, offset: int = 0, namespace: str | None = None, status: str | None = None
    ) -> View:
        """Return a page of tasks without their steps, the newest first: `tasks` and `pagination` (counts up to
        10,000)."""
        rows = await self.page(TaskFilter(namespace, status), limit=limit, offset=offset)
        count = await self.count(TaskFilter(namespace, status))
        return {"tasks": rows, "pagination": _pagination(limit, offset, count.number)}

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
        return await self._tasks([checked(task_uuid) for task_uuid in task_uuids])

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

    async def inputs(self, task_uuid: str, step_uuid: str) -> View:
        """Return the input of a step's handler: `inputs` and `problems` by name, `evaluated`, `attempt`.

        Raises `TaskNotFound`, `StepNotFound`.
        """
        from tasker.services.tasks.step_inputs import step_inputs  # lazy import, needed by few callers

        return await step_inputs(self._engine, self._plans, await self.step(task_uuid, step_uuid))

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
        "current_state": row["status"],
        "duration_ms": _milliseconds(row["created_at"], row["completed_at"]),
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
        "workflow_step_uuid": row["step_uuid"],
        "dependencies_satisfied": unmet == 0,
        "completed_parents": row["total_parents"] - unmet,
        "retry_eligible": eligible,
        "ready_for_execution": waits and unmet == 0 and due and eligible,
    }


def _readiness(step: View) -> View:
    """Return the step as listed in its task, without its result."""
    return {key: value for key, value in step.items() if key not in ("step_uuid", "results", "completed_at")}


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


def _milliseconds(began: str, ended: str | None) -> int | None:
    if ended is None:
        return None
    return round((datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds() * 1000)


def _with_utc(row: View) -> View:
    """Return the document with its times in UTC, regardless of the session's time zone."""
    return {key: _utc(value) if key.endswith(("_at", "_until")) else value for key, value in row.items()}


def _utc(time: str | None) -> str | None:
    return None if time is None else _iso(datetime.fromisoformat(time))


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


SHORTEST_PREFIX, DIGITS = 6, 32
MOST_NAMED = 20
Kind = Literal["task", "entry", "correlation", "tasks", "template", "namespace", "tag", "templates", "nothing"]


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """Result of a search.

    `kind` is a `task`, a dead letter's `entry`, the `correlation` of tasks, several `tasks` with that id prefix, a
    `template` or `namespace` of this name, a `tag`, `templates` (namespace and name) whose names contain the text, or
    `nothing`.
    """

    kind: Kind
    identifiers: Sequence[str] = ()
    templates: Sequence[tuple[str, str]] = ()


class TaskSearch:
    """Search for tasks by a text."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def find(self, text: str, *, namespaces: Collection[str] | None = None) -> SearchMatch:
        """Return the match of a text: an id or its beginning (at least six digits), a template, a namespace or a tag.

        `namespaces`: only search these; None searches all.
        """
        text, where = text.strip(), names(namespaces)
        digits = text.replace("-", "").lower()
        if digits and not set(digits) - set(string.hexdigits) and SHORTEST_PREFIX <= len(digits) <= DIGITS:
            match = await (self._of_uuid if len(digits) == DIGITS else self._of_prefix)(digits, where)
            if match.kind != "nothing":
                return match
        return await self._of_word(text, where)

    async def _of_uuid(self, digits: str, namespaces: list[str] | None) -> SearchMatch:
        rows = await self._query("of_uuid", uuid=str(UUID(digits)), namespaces=namespaces)
        return SearchMatch(rows[0][0], [rows[0][1]]) if rows else SearchMatch("nothing")

    async def _of_prefix(self, digits: str, namespaces: list[str] | None) -> SearchMatch:
        bounds = {"lowest": f"{digits:0<32}", "highest": f"{digits:f<32}"}
        params = {**bounds, "limit": MOST_NAMED, "namespaces": namespaces}
        task_uuids = [row[0] for row in await self._connection.execute(query("tasks", "starting_with"), params)]
        return (
            SearchMatch("tasks" if len(task_uuids) > 1 else "task", task_uuids)
            if task_uuids
            else SearchMatch("nothing")
        )

    async def _of_word(self, text: str, namespaces: list[str] | None) -> SearchMatch:
        rows = await self._query("templates_like", text=text, namespaces=namespaces, limit=MOST_NAMED)
        if exact := [(namespace, name) for namespace, name, same in rows if same]:
            return SearchMatch("template", templates=exact)
        if match := next((namespace for namespace, *_ in rows if namespace.lower() == text.lower()), None):
            return SearchMatch("namespace", [match])
        if await self._query("tagged", tag=text, namespaces=namespaces):
            return SearchMatch("tag", [text])
        templates = [(namespace, name) for namespace, name, _ in rows]
        return SearchMatch("templates" if templates else "nothing", templates=templates)

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._connection.execute(query("listing", name), params)
