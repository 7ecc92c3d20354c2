"""Search by a text that may be the id or name of a task, a dead letter, a template, a namespace or a tag."""

from __future__ import annotations

import json
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar
from uuid import UUID

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.engine.states.step import StepState
from tasker.errors import StepNotFound, TaskerError, TaskNotFound, UsageError
from tasker.operations.tasks import MOST_STEPS
from tasker.services.cursors import cursor_after, cursor_of
from tasker.services.tasks.lists import Count, TaskFilter, TaskLists
from tasker.services.tasks.read import COLUMNS, Tasks, checked, names, not_found
from tasker.services.viewer import Redaction, Viewed
from tasker.views.model import from_row
from tasker.views.steps import Attempt, Step, StepInputs, StepReadiness
from tasker.views.task_details import TaskContext, TaskDetails, task_context, task_details
from tasker.views.task_lists import Pagination
from tasker.views.tasks import Task, TaskPage, task_of

View = dict[str, Any]
S = TypeVar("S", bound=StepReadiness)

MOST_TRANSITIONS = 10_000
"""Of the details of a task."""
COUNTED = 10_000
"""Maximum number of tasks counted for a page; if there are more, `total_count` is this number."""

TASKS = query("client", "tasks").format(columns=COLUMNS)
TASK = query("client", "task").format(task=TASKS, steps=query("client", "steps"))
"""SQL that reads a task and its steps in one snapshot."""


class ClientViews(Viewed):
    """Reads for clients. Ids are text; a malformed one raises `UsageError`."""

    def __init__(self, engine: Engine, plans: PlanStore, redaction: Redaction | None = None) -> None:
        self._engine, self._plans, self._lists = engine, plans, TaskLists(engine.connection)
        self._redaction = redaction

    async def task(self, task_uuid: str, *, limit: int | None = None, offset: int = 0) -> Task:
        """One task with its steps, or with a page of them; `more_steps` follow. Raises `TaskNotFound`."""
        task = checked(task_uuid)
        params = {"tasks": [task], "task": task, "step": None, "results": False, "limit": limit, "offset": offset}
        ((row, steps),) = await self._engine.connection.execute(TASK, params)
        if row is None:
            raise TaskNotFound(f"no task {task_uuid} in this database")
        more = max(0, row["total"] - offset - len(steps))
        return await self._shown(task, task_of(row, [_step(StepReadiness, step) for step in steps], more))

    async def context(self, task_uuid: str) -> TaskContext:
        """Return the input of a task and its progress. Raises `TaskNotFound`."""
        task = await self.task(task_uuid, limit=0)
        ((enqueued,),) = await self._query("enqueued", task=task.task_uuid)
        return task_context(task, enqueued)

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
    ) -> TaskPage:
        """Return a page of tasks without their steps, the newest first, counted to 10,000."""
        tasks = await self.page(TaskFilter(namespace, status), limit=limit, offset=offset)
        count = await self.count(TaskFilter(namespace, status))
        return TaskPage(tasks, _pagination(limit, offset, count))

    async def task_page(
        self,
        which: TaskFilter,
        *,
        sort: str = "-created_at",
        page: int = 0,
        per_page: int = 50,
        cursor: str | None = None,
    ) -> TaskPage:
        """Return a page of the matching tasks without their steps; with a cursor without counts.

        Raises `UsageError` for an invalid cursor.
        """
        after = cursor_of(cursor, sort) if cursor else None
        start = 0 if after else page * per_page
        tasks, read_to = await self.part(
            which, limit=per_page + 1, offset=start, after=after, oldest_first=sort[0] != "-"
        )
        shown = tasks[:per_page]
        last = shown[-1].task_uuid if len(tasks) > per_page else read_to
        following = Pagination(per_page, last is not None, next_cursor=cursor_after(last, sort) if last else None)
        if after is None:
            counted = _pagination(per_page, start, await self.count(which))
            following = replace(counted, has_next=following.has_next, next_cursor=following.next_cursor)
        return TaskPage(shown, following)

    async def template(self, task_uuid: str) -> Mapping[str, Any]:
        """Return the compiled template that a task is pinned to. Raises `TaskNotFound`."""
        plan = await self._plans.get(await Tasks(self._engine).template_id(task_uuid))
        return dict(json.loads(plan.to_json()))

    async def details(self, task_uuid: str) -> TaskDetails:
        """Return a task with the results of its steps and its history: at most 1,000 steps and 10,000 transitions.

        Raises `TaskNotFound`.
        """
        task = await self.task(task_uuid, limit=MOST_STEPS)
        reads = Tasks(self._engine)
        report = await reads.report(task_uuid, limit=MOST_STEPS)
        details = task_details(task, report, await reads.history(task_uuid, limit=MOST_TRANSITIONS))
        return await self._shown(task.task_uuid, details)

    async def page(
        self, which: TaskFilter, *, limit: int, offset: int = 0, after: str | None = None, oldest_first: bool = False
    ) -> list[Task]:
        """Return the matching tasks without their steps, by creation time, starting after the task `after`."""
        if limit < 1 or offset < 0:
            raise UsageError(f"limit {limit} and offset {offset}", hint="limit is at least 1, offset at least 0")
        place = after and checked(after)
        await self._require_searchable(which)
        page = await self._lists.page(which, limit=limit, offset=offset, after=place, oldest_first=oldest_first)
        tasks = await self._tasks(page)
        return tasks[::-1] if oldest_first else tasks

    async def part(
        self, which: TaskFilter, *, limit: int, offset: int = 0, after: str | None = None, oldest_first: bool = False
    ) -> tuple[list[Task], str | None]:
        """The same, and the task behind which others may match where the page could not be filled at a bounded cost."""
        place = after and checked(after)
        await self._require_searchable(which)
        part = await self._lists.part(which, limit=limit, offset=offset, after=place, oldest_first=oldest_first)
        tasks = await self._tasks(part.tasks)
        return (tasks[::-1] if oldest_first else tasks), part.read_to

    async def _require_searchable(self, which: TaskFilter) -> None:
        if which.context is not None and self._redaction is not None:
            await self._redaction.require_searchable(which.namespace)

    async def some(self, task_uuids: Sequence[str]) -> list[Task]:
        """Return those of these tasks that exist, without their steps, the newest first."""
        return await self._tasks([checked(task_uuid) for task_uuid in task_uuids])

    async def count(self, which: TaskFilter) -> Count:
        """Return the number of matching tasks, counted to 10,000. A common tag, initiator or source combined with other
        filters is counted among the newest 10,000 tasks that match those filters."""
        return await self._lists.counted(which, COUNTED)

    async def inputs_are_indexed(self) -> bool:
        """Return True if fields of the input find all tasks, not only the newest."""
        return await self._lists.inputs_are_indexed()

    async def steps(self, task_uuid: str, *, limit: int | None = None, offset: int = 0) -> list[Step]:
        """The steps of a task in topological order, or a page of them. Raises `TaskNotFound`."""
        return await self._steps(task_uuid, None, limit=limit, offset=offset)

    async def step(self, task_uuid: str, step_uuid: str) -> Step:
        """Return one step of a task. Raises `TaskNotFound`, `StepNotFound`."""
        return (await self._steps(task_uuid, checked(step_uuid)))[0]

    async def inputs(self, task_uuid: str, step_uuid: str) -> StepInputs:
        """Return the input of a step's handler.

        Raises `TaskNotFound`, `StepNotFound`.
        """
        from tasker.services.tasks.step_inputs import step_inputs  # lazy import, needed by few callers

        (step,) = await self._read_steps(task_uuid, checked(step_uuid))
        return await self._shown(step.task_uuid, await step_inputs(self._engine, self._plans, step))

    async def audit(self, task_uuid: str, step_uuid: str | None = None) -> list[Attempt]:
        """Return the stored results of a step, or of every step of a task, each with its worker, the newest first.

        Raises `TaskNotFound`, `StepNotFound`.
        """
        step = None if step_uuid is None else checked(step_uuid)
        await self._read_steps(task_uuid, step)
        rows = await self._query("audit", task=checked(task_uuid), step=step)
        return await self._shown(checked(task_uuid), [from_row(Attempt, row) for (row,) in rows])

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
        return {
            "healthy": healthy,
            "status": status,
            "timestamp": now.astimezone(UTC).isoformat(),
            "components": components,
        }

    async def _tasks(self, tasks: Sequence[str]) -> list[Task]:
        rows = await self._engine.connection.execute(TASKS, {"tasks": list(tasks)})
        found = [task_of(row) for (row,) in rows]
        return found if self._redaction is None else [*await self._redaction.tasks(found)]

    async def _steps(
        self, task_uuid: str, step_uuid: str | None, *, limit: int | None = None, offset: int = 0
    ) -> list[Step]:
        steps = await self._read_steps(task_uuid, step_uuid, limit=limit, offset=offset)
        return await self._shown(checked(task_uuid), steps)

    async def _read_steps(
        self, task_uuid: str, step_uuid: str | None, *, limit: int | None = None, offset: int = 0
    ) -> list[Step]:
        task = checked(task_uuid)
        rows = await self._query("steps", task=task, step=step_uuid, results=True, limit=limit, offset=offset)
        if not rows:
            if not await self._tasks([task]):
                raise TaskNotFound(f"no task {task_uuid} in this database")
            if offset:
                return []
            raise StepNotFound(f"task {task_uuid} has no step {step_uuid}")
        return [_step(Step, row) for (row,) in rows]

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("client", name), params)


def _step(kind: type[S], row: Mapping[str, Any]) -> S:
    unmet, attempts = row["unmet"], row["attempts"]
    waits = row["state"] in (StepState.PENDING, StepState.WAITING_FOR_RETRY)
    eligible = attempts == 0 or (row["retryable"] and attempts < row["max_attempts"])
    return from_row(
        kind,
        row,
        dependencies_satisfied=unmet == 0,
        completed_parents=row["total_parents"] - unmet,
        retry_eligible=eligible,
        ready_for_execution=waits and unmet == 0 and row["due"] and eligible,
        backoff_request_seconds=None,
    )


def _pagination(limit: int, offset: int, count: Count) -> Pagination:
    return Pagination(
        per_page=limit,
        has_next=offset + limit < count.number,
        page=offset // limit,
        total_count=count.number,
        total_is_minimum=count.at_least,
        total_pages=-(-count.number // limit),
        has_previous=offset > 0,
    )


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
        params = {**bounds, "limit": MOST_NAMED, "namespaces": namespaces, "tenants": None}
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
