"""Reading and steering tasks: reports, lists, history, cancelling, operator actions on steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tasker.db.queries import query
from tasker.errors import StateMachineError, StepNotFound, TaskNotFound, UsageError
from tasker.lifecycle.storable import encode
from tasker.services.engine import Engine
from tasker.services.reports import TaskReport, task_report


class Tasks:
    """The use cases around existing tasks. All take a task's identifier as text; a malformed one is a `UsageError`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def report(self, task_uuid: str) -> TaskReport:
        """The task with all its steps. Raises `TaskNotFound`."""
        rows = await self._query("report", task=_checked(task_uuid))
        if not rows:
            raise _not_found(task_uuid)
        return task_report(rows[0][0])

    async def state(self, task_uuid: str) -> tuple[str, bool]:
        """The task's state, and whether it is final. Raises `TaskNotFound`."""
        rows = await self._query("state", task=_checked(task_uuid))
        if not rows:
            raise _not_found(task_uuid)
        return rows[0][0], rows[0][1]

    async def list(
        self, *, namespace: str | None = None, template: str | None = None, status: str | None = None,
        limit: int = 50, offset: int = 0,
    ) -> list[dict[str, Any]]:
        """Tasks, the newest first."""
        columns = ("task_uuid", "namespace", "template", "version", "status", "priority", "total", "done", "failed",
                   "created_at", "completed_at")
        rows = await self._query(
            "list", namespace=namespace, template=template, status=status, limit=limit, offset=offset
        )
        return [dict(zip(columns, row, strict=True)) for row in rows]

    async def history(self, task_uuid: str) -> list[dict[str, Any]]:
        """Every transition of the task and its steps, in order. Raises `TaskNotFound`."""
        columns = ("kind", "step", "from_state", "to_state", "at", "sort_key", "worker", "attempt", "metadata",
                   "execution_time_ms")
        rows = await self._query("history", task=_checked(task_uuid))
        if not rows:
            raise _not_found(task_uuid)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    async def cancel(self, task_uuid: str, *, reason: str = "", actor: str = "") -> str:
        """Cancel the task and every step of it that is not final; the state it was in.

        Raises `TaskNotFound`, and `StateMachineError` when it is final already.
        """
        answer = await self._engine.call("cancel", {"task": _checked(task_uuid), "reason": reason, "actor": actor})
        if answer["cancelled"]:
            return str(answer["from"])
        if "state" not in answer:
            raise _not_found(task_uuid)
        raise StateMachineError(f"task {task_uuid} is {answer['state']} and cannot be cancelled")

    async def reset_step(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        """Run a step in `error` again, with its attempts counted from zero (C-121)."""
        await self._operate("reset", task_uuid, step, {"actor": actor, "reason": reason})

    async def resolve_step(self, task_uuid: str, step: str, *, actor: str, reason: str) -> None:
        """Take a step as done without a result; what depends on it goes on (C-121)."""
        await self._operate("resolve", task_uuid, step, {"actor": actor, "reason": reason})

    async def complete_step(
        self, task_uuid: str, step: str, result: Mapping[str, Any], *, actor: str, reason: str
    ) -> None:
        """Take a step as done with this result (C-121)."""
        encode(dict(result))
        await self._operate("complete", task_uuid, step, {"actor": actor, "reason": reason}, result)

    async def _operate(
        self, kind: str, task_uuid: str, step: str, note: Mapping[str, Any], result: Mapping[str, Any] | None = None
    ) -> None:
        answer = await self._engine.call("operate", {
            "task": _checked(task_uuid), "step": step, "kind": kind, "note": dict(note),
            **({"result": dict(result)} if result is not None else {}),
        })
        if answer.get("missing"):
            raise StepNotFound(f"task {task_uuid} has no step {step!r}")
        if verdicts := answer.get("verdicts"):
            raise StateMachineError(
                f"step {step!r} is {answer.get('state')}: {kind} is not possible ({next(iter(verdicts.values()))})"
            )

    async def _query(self, name: str, **params: Any) -> list[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("tasks", name), params)


def _checked(task_uuid: str) -> str:
    try:
        return str(UUID(task_uuid))
    except ValueError:
        raise UsageError(f"{task_uuid!r} is not a task's identifier", hint="expected a UUID; see `tasker task list`") from None


def _not_found(task_uuid: str) -> TaskNotFound:
    return TaskNotFound(f"no task {task_uuid} in this database", hint="see `tasker task list`")
