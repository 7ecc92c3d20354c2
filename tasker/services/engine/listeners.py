"""Listeners of the engine's writes. Arguments are only built for hooks that are set."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.hook_arguments import StateTransition, TaskClosed, TasksSubmitted, TaskSubmitted, WriteCommitted
from tasker.contracts.plan import Plan
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import DatabaseError
from tasker.resilience.outage import level_of
from tasker.services.engine.transitions import closed_elsewhere, transitions_of
from tasker.services.engine.written import written
from tasker.services.task_lines import log_closed_tasks, logs_task_end

_log = logging.getLogger("tasker.engine")


@dataclass(frozen=True, slots=True)
class WriteListeners:
    """Callbacks for each write: its state transitions, its counts, the tasks it created, and the tasks it ended."""

    on_moved: Callable[[Sequence[StateTransition]], None] | None = None
    on_written: Callable[[WriteCommitted], None] | None = None
    on_submitted: Callable[[TasksSubmitted], None] | None = None
    on_closed: Callable[[Sequence[TaskClosed]], None] | None = None

    def answered(self, function: str, args: Mapping[str, Any], answer: Mapping[str, Any], began: float) -> None:
        """Publish the answer of `tasker.FUNCTION_v1`, called at `began` (`perf_counter`)."""
        if self.on_moved is not None and (moved := transitions_of(function, args, answer, began)):
            self.on_moved(moved)
        if self.on_written is not None:
            self.on_written(written(function, args, answer, began))

    async def closed(
        self, args: Mapping[str, Any], answer: Mapping[str, Any], connection: Statements, *, told: bool
    ) -> None:
        """Publish tasks that this write ended without a result of this process. Errors are only logged.

        The ends of all tasks are logged, unless the component that reported the results does so (`told`).
        """
        elsewhere = closed_elsewhere(args, answer) if self.on_closed is not None else {}
        untold = answer["finished"] if logs_task_end() and not told else {}
        if not (tasks := {**elsewhere, **untold}):
            return
        try:
            rows = await connection.execute(query("tasks", "closed"), {"tasks": [*tasks]})
        except DatabaseError as error:
            _log.log(level_of(error), "task_closed_hook_failed count=%s reason=%s", len(tasks), error)
            return
        closed = [TaskClosed(task, tasks[task], *more) for task, *more in rows]
        if self.on_closed is not None and elsewhere:
            self.on_closed(tuple(task for task in closed if task.task_uuid in elsewhere))
        log_closed_tasks(task for task in closed if task.task_uuid in untold)

    def submitted(self, plan: Plan, created: Iterable[TaskSubmitted], began: float) -> None:
        """Publish the created tasks of a template, submitted at `began` (`perf_counter`)."""
        if self.on_submitted is not None and (tasks := tuple(created)):
            duration_ms = (perf_counter() - began) * 1000
            now = datetime.now(UTC)
            self.on_submitted(TasksSubmitted(plan.namespace, plan.name, len(tasks), duration_ms, tasks, now))
