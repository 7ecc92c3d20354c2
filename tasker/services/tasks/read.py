"""Use cases of existing tasks: reports, lists, history, cancellation."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

from tasker.db.sql_files import query
from tasker.engine.answers import CancelAnswer, CompensateAnswer
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.errors import StateMachineError, StepNotFound, TaskNotFound, UsageError
from tasker.errors.remedies import remedy, see
from tasker.operations.tasks import MOST_IDENTIFIERS, PREFIX
from tasker.redaction import REDACTED
from tasker.services.audit import audited
from tasker.services.tasks.children import read_family
from tasker.services.tasks.lists import ListFilters, TaskFilter, TaskLists, context_of
from tasker.services.tasks.logs import LogFilter, read_logs
from tasker.services.viewer import Redaction, Viewed
from tasker.views.children import TaskFamily
from tasker.views.explanation import Explanation, explanation
from tasker.views.progress import TaskProgress, task_progress
from tasker.views.steps import StepLogLine
from tasker.views.task_lists import RefusedMessage, StepExtras, TaskSummary, TransitionDetail
from tasker.views.tasks import STORED, TaskReport, stored_report

EXPLAINED_GROUPS = 200
"""Number of groups of steps that an explanation describes."""
LISTED_SLICE = 500
"""Tasks of one query of a list."""
SLICE = 1_000
"""Steps of one statement of a report."""
COLUMNS = query("client", "columns")
REPORT = query("tasks", "report").format(columns=COLUMNS, edges_of_page="", names="null", of_page="")
REPORT_OF_FEW = query("tasks", "report").format(
    columns=COLUMNS, edges_of_page="", names="null", of_page="and t.total <= %(limit)s"
)
"""A task with its edges, and with its steps if they are no more than a slice."""
STEPS_OF_SLICE = query("tasks", "report").format(
    columns=COLUMNS,
    edges_of_page="and false",
    names="null",
    of_page=f"and s.workflow_step_uuid = any (array({query('tasks', 'slice_of_steps')}))",
)
"""A task with a slice of its steps, without the edges."""


def report_of(steps: str) -> str:
    """Return the query of a task with those of its steps that the query `steps` finds."""
    return query("tasks", "report").format(
        columns=COLUMNS,
        edges_of_page=f"and e.to_step_uuid = any (array({steps}))",
        names=f"({query('tasks', 'static_names').format(page_of_steps=steps)})",
        of_page=f"and s.workflow_step_uuid = any (array({steps}))",
    )


PAGE_OF_REPORT = report_of(query("tasks", "page_of_steps"))
"""A task with a page of its steps."""

_UUID, _ORDINAL = STORED.index("step_uuid"), STORED.index("ordinal")


class Tasks(Viewed):
    """Use cases of existing tasks. Ids are text; a malformed one raises `UsageError`."""

    def __init__(self, engine: Engine, redaction: Redaction | None = None) -> None:
        self._engine, self._lists, self._redaction = engine, TaskLists(engine.connection), redaction

    async def report(self, task_uuid: str, *, limit: int | None = None, offset: int = 0) -> TaskReport:
        """The task with all its steps, or with a page of them; `more_steps` follow. Raises `TaskNotFound`.

        A task wider than a slice is read slice by slice: its steps may be newer than the rest of the report.
        """
        task = checked(task_uuid)
        params = {"task": task, "limit": limit, "offset": offset}
        if limit is None and not offset:
            return await self._shown(task, await self._whole_report(task_uuid))
        rows = await self._engine.connection.execute(PAGE_OF_REPORT, params)
        if not rows:
            raise not_found(task_uuid)
        return await self._shown(task, stored_report(rows[0][0], before=offset))

    async def _whole_report(self, task_uuid: str) -> TaskReport:
        task = checked(task_uuid)
        rows = await self._engine.connection.execute(REPORT_OF_FEW, {"task": task, "limit": SLICE})
        if not rows:
            raise not_found(task_uuid)
        document = rows[0][0]
        steps = document["steps"] or await self._steps_of_wide(task)
        return stored_report({**document, "steps": steps})

    async def _steps_of_wide(self, task: str) -> Sequence[Sequence[Any]]:
        steps: list[Sequence[Any]] = []
        after, more = task, True
        while more:
            params = {"task": task, "after": after, "limit": SLICE, "offset": 0}
            rows = await self._engine.connection.execute(STEPS_OF_SLICE, params)
            part = (rows[0][0]["steps"] if rows else None) or []
            steps += part
            more = len(part) == SLICE
            after = max((step[_UUID] for step in part), default=after)
        return sorted(steps, key=lambda step: (step[_ORDINAL], step[_UUID]))

    async def state(self, task_uuid: str) -> tuple[str, bool]:
        """Return the task's state, and True if it is final. Raises `TaskNotFound`."""
        rows = await self._query("state", task=checked(task_uuid))
        if not rows:
            raise not_found(task_uuid)
        return rows[0][0], rows[0][1]

    async def progress(self, task_uuid: str, since: datetime | None = None) -> TaskProgress:
        """Return the task, and those of its steps that changed since then or run now. Raises `TaskNotFound`."""
        results_queue = self._engine.messaging.names.step_results
        rows = await self._query("progress", task=checked(task_uuid), since=since, results_queue=results_queue)
        if not rows:
            raise not_found(task_uuid)
        return await self._shown(checked(task_uuid), task_progress(rows[0][0]))

    async def explain(self, task_uuid: str, step: str | None = None, *, names: int = 5) -> Explanation:
        """Explain why each step that has not ended does not run now, and what would change that.

        With `step`, explain only that step, even if it has ended or was not created, or the instances of that batch
        worker. `names` is the maximum number of steps named per reason. Raises `TaskNotFound`, `StepNotFound`.
        """
        results_queue = self._engine.messaging.names.step_results
        args = {"task": checked(task_uuid), "step": step, "names": names, "results_queue": results_queue}
        args["groups"] = EXPLAINED_GROUPS
        row = await self._engine.read("explain", args)
        if not row:
            raise not_found(task_uuid)
        if step is not None and not row["groups"]:
            known = ", ".join(row["known"])
            raise StepNotFound(f"task {task_uuid} has no step {step!r}", hint=f"its template has: {known}")
        if step is not None and row["groups"][0]["reason"] == "not_chosen":
            from tasker.services.tasks.absent_steps import why_absent  # lazy import, rarely needed

            plan = await PlanStore(self._engine.connection).get(await self.template_id(task_uuid))
            row["groups"] = [why_absent(plan, step, await self.report(task_uuid)) or row["groups"][0]]
        return await self._shown(checked(task_uuid), explanation(row))

    async def children(
        self,
        task_uuid: str,
        *,
        step: str | None = None,
        after: str | None = None,
        limit: int = 50,
        namespaces: Collection[str] | None = None,
        tenants: Collection[str] | None = None,
    ) -> TaskFamily:
        """Return the step that started a task, and a page of the tasks that its steps, or this one, have started.

        `after` is `next_after` of the previous page. `namespaces`, `tenants`: only tasks of these; None allows all.
        Raises `TaskNotFound`.
        """
        return await read_family(
            self._engine.connection,
            checked(task_uuid),
            step=step,
            after=None if after is None else checked(after),
            limit=limit,
            namespaces=names(namespaces),
            tenants=names(tenants),
        )

    async def has_step(
        self, step_uuid: str, *, namespaces: Collection[str] | None = None, tenants: Collection[str] | None = None
    ) -> bool:
        """Return True if a task of these namespaces and tenants (None allows all) has the step with this UUID."""
        params = {"step": step_uuid, "namespaces": names(namespaces), "tenants": names(tenants)}
        ((there,),) = await self._engine.connection.execute(query("children", "has_step"), params)
        return bool(there)

    async def template_id(self, task_uuid: str) -> int:
        """Return the id of the compiled template to which the task is pinned. Raises `TaskNotFound`."""
        rows = await self._query("template_id", task=checked(task_uuid))
        if not rows:
            raise not_found(task_uuid)
        return int(rows[0][0])

    async def starting_with(
        self,
        prefix: str,
        *,
        limit: int = 10,
        namespaces: Collection[str] | None = None,
        tenants: Collection[str] | None = None,
    ) -> Sequence[str]:
        """Return the tasks whose id begins with `prefix` (hex digits, with or without hyphens), the newest first.

        `namespaces`: only tasks of these; None allows all. Raises `UsageError` for another prefix, and for a limit that
        the operation does not allow.
        """
        if not re.fullmatch(PREFIX, prefix):
            raise UsageError(f"{prefix!r:.60} is not the beginning of an identifier", hint="1 to 36 hexadecimal digits")
        if not 1 <= limit <= MOST_IDENTIFIERS:
            raise UsageError(f"limit: expected 1 to {MOST_IDENTIFIERS}, got {limit}", hint="change limit")
        digits = prefix.replace("-", "").lower()
        bounds = {"lowest": f"{digits:0<32}", "highest": f"{digits:f<32}"}
        where = {"namespaces": names(namespaces), "tenants": names(tenants)}
        rows = await self._query("starting_with", **bounds, limit=limit, **where)
        return [row[0] for row in rows]

    async def list(
        self,
        *,
        namespace: str | None = None,
        template: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        tags: Sequence[str] = (),
        limit: int = 50,
        offset: int = 0,
        namespaces: Collection[str] | None = None,
        tenants: Collection[str] | None = None,
        **more: Unpack[ListFilters],
    ) -> Sequence[TaskSummary]:
        """Return tasks, the newest first, created at or after `since` and with all of the `tags`.

        `namespaces`, `tenants`: only tasks of these, in addition to `namespace` and `tenant`; None allows all.
        """
        filters: dict[str, Any] = {"created_before": more.get("until"), **more}
        filters.pop("until", None)
        oldest_first = bool(filters.pop("oldest_first", False))
        field = filters.pop("field", None)
        if field and self._redaction is not None:
            await self._redaction.require_searchable(namespace)
        filters["context"] = context_of(field) if field else None
        if filters.get("correlation_id"):
            filters["correlation_id"] = identifier(filters["correlation_id"], "a correlation's identifier")
        named: dict[str, Any] = {"namespace": namespace, "status": status, "template": template, "tags": tags}
        named |= {"namespaces": names(namespaces), "tenants": names(tenants)}
        which = TaskFilter(**named, created_after=since, **filters)
        page = await self._lists.page(which, limit=limit, offset=offset, oldest_first=oldest_first)
        summaries = [TaskSummary(*row) for row in await self._listed(page)]
        return summaries[::-1] if oldest_first else summaries

    async def _listed(self, tasks: Sequence[str]) -> Sequence[tuple[Any, ...]]:
        """The rows of these tasks, so many at a time: no statement grows with the list."""
        slices = [tasks[start : start + LISTED_SLICE] for start in range(0, len(tasks), LISTED_SLICE)]
        return [row for some in slices for row in await self._query("list", tasks=some)]

    async def open_beside(self, task_uuid: str) -> tuple[int, int]:
        """Return the numbers of other open tasks: in the namespace of this one, and in all other namespaces."""
        ((here, elsewhere),) = await self._query("open_beside", task=checked(task_uuid))
        return here, elsewhere

    async def history(self, task_uuid: str, *, limit: int | None = None, offset: int = 0) -> Sequence[TransitionDetail]:
        """Return the transitions of the task and its steps in order, or one page of them. Raises `TaskNotFound`."""
        rows = await self._query("history", task=checked(task_uuid), limit=limit, offset=offset)
        if not rows and not offset:
            raise not_found(task_uuid)
        return await self._shown(checked(task_uuid), [TransitionDetail(*row) for row in rows])

    async def history_of_steps(self, task_uuid: str, *, limit: int, offset: int = 0) -> Sequence[TransitionDetail]:
        """The transitions of the task and of a page of its steps, which are in the order of their creation."""
        rows = await self._query("history_of_steps", task=checked(task_uuid), limit=limit, offset=offset)
        return await self._shown(checked(task_uuid), [TransitionDetail(*row) for row in rows])

    async def logs(
        self,
        task_uuid: str,
        *,
        step: str | None = None,
        attempt: int | None = None,
        level: str = "debug",
        since: datetime | None = None,
        after: str | None = None,
        limit: int = 1000,
    ) -> Sequence[StepLogLine]:
        """Return the log lines and printed output of a task's handlers, ordered by time; each line has a `place`.

        The parameters are those of `LogFilter`. A line is stored about a second after it was written. Raises
        `TaskNotFound`, and `UsageError` for a malformed place.
        """
        which = LogFilter(step, attempt, level, since, after, limit)
        lines = await read_logs(self._engine.connection, checked(task_uuid), which)
        if not lines:
            await self.state(task_uuid)
        return await self._shown(checked(task_uuid), lines)

    async def step_extras(self, task_uuid: str, step: str) -> StepExtras:
        """Return the batch and the checkpoint of a step. Raises `StepNotFound`."""
        rows = await self._query("kept", task=checked(task_uuid), step=step)
        if not rows:
            raise StepNotFound(f"task {task_uuid} has no step {step!r}", hint=see("tasker task show"))
        return await self._shown(checked(task_uuid), StepExtras(*rows[0]))

    async def refused(self, *, queue: str | None = None, limit: int = 50) -> Sequence[RefusedMessage]:
        """Return quarantined messages of one queue or all, with the reason, the newest first."""
        rows = await self._query("refused", queue=queue, limit=limit)
        messages = [RefusedMessage(*row) for row in rows]
        if self._viewer.sees_everything:
            return messages
        return [replace(message, message=REDACTED) for message in messages]  # may contain the input of any task

    @audited("App.tasks.cancel")
    async def cancel(
        self, task_uuid: str, *, reason: str = "", actor: str | None = None, compensate: bool = False
    ) -> str:
        """Cancel the task and every step of it that is not final, and return the task's former state.

        With `compensate` the effects of its complete steps are undone before it ends; without, a task that is being
        compensated stops doing so. Steps of `finally` run before it ends. Raises `TaskNotFound`, and
        `StateMachineError` if the task is already final, or is to be compensated and already is.
        """
        args = {"task": checked(task_uuid), "reason": reason, "actor": actor or "", "compensate": compensate}
        answer = await self._engine.call_typed("cancel", args, CancelAnswer)
        if answer.former is not None:
            return answer.former
        if answer.state is None:
            raise not_found(task_uuid)
        if answer.outcome is not None:
            hint = remedy("leave the rest of its effects with {} without `--compensate`", "tasker task cancel")
            raise StateMachineError(f"task {task_uuid} is {answer.outcome}", hint=hint)
        raise StateMachineError(f"task {task_uuid} is {answer.state} and cannot be cancelled")

    @audited("App.tasks.compensate")
    async def compensate(self, task_uuid: str, *, reason: str = "", actor: str | None = None) -> str:
        """Undo the effects of the complete steps of a task that failed, and return its former state.

        Raises `TaskNotFound`, and `StateMachineError` if the task has not failed, is or was compensated, or has nothing
        to undo.
        """
        args = {"task": checked(task_uuid), "reason": reason, "actor": actor or ""}
        answer = await self._engine.call_typed("compensate", args, CompensateAnswer)
        if answer.former is not None:
            return answer.former
        if answer.state is None:
            raise not_found(task_uuid)
        if answer.outcome is not None:
            message, hint = f"task {task_uuid} is {answer.outcome}", see("tasker task show")
        elif not answer.undoable:
            message = f"no complete step of task {task_uuid} has `compensate`: there is nothing to undo"
            hint = None
        else:
            message = f"task {task_uuid} is {answer.state}: only a task that failed is compensated"
            hint = remedy("cancel an open task with {}", "tasker task cancel --compensate")
        raise StateMachineError(message, hint=hint)

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("tasks", name), params)


def names(given: Collection[str] | None) -> list[str] | None:
    """Return namespaces as a query parameter."""
    return None if given is None else sorted(given)


def checked(task_uuid: str) -> str:
    """Return a task's id in canonical form. Raises `UsageError` if it is malformed."""
    return identifier(str(task_uuid), "a task's identifier")


def identifier(text: str, what: str) -> str:
    """Return an id in canonical form. Raises `UsageError` if it is malformed; `what` names it in the message."""
    try:
        return str(UUID(text))
    except ValueError:
        raise UsageError(
            f"{text!r} is not {what}", hint=remedy("expected a UUID; see {}", "tasker task list")
        ) from None


def not_found(task_uuid: str) -> TaskNotFound:
    return TaskNotFound(f"no task {task_uuid} in this database", hint=see("tasker task list"))
