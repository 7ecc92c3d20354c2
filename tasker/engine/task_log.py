"""Log lines about tasks and steps known only by id; their task's ids are read from the database.

One query serves all lines of one write or answer, and only if their logger is enabled.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import DatabaseError
from tasker.json_values import to_json
from tasker.logging.lines import ids_of_task, log_line, of_trace
from tasker.logging.trace_context import TraceContext
from tasker.messaging.queues import QueueNames
from tasker.plugins.hook_arguments import TaskClosed
from tasker.resilience.outage import level_of

_engine, _ends = logging.getLogger("tasker.engine"), logging.getLogger("tasker.orchestration")

Ids = dict[str, Any]


async def read_task_ids(connection: Statements, tasks: Collection[str]) -> dict[str, Ids]:
    """Return the log fields that identify each task, by task: only the id if the database does not answer."""
    ids_by_task: dict[str, Ids] = {task: {"task_uuid": task} for task in tasks}
    try:
        rows = await connection.execute(query("tasks", "whose"), {"tasks": [*tasks]}) if tasks else ()
    except DatabaseError as error:
        _engine.log(level_of(error), "lines_without_correlation tasks=%s reason=%s", len(tasks), error)
    else:
        ids_by_task |= {row[0]: ids_of_task(row[0], row[1], row[2], trace_of(row[3])) for row in rows}
    return ids_by_task


def trace_of(stored: Mapping[str, Any] | None) -> TraceContext | None:
    """Parse the trace context stored with a task."""
    return TraceContext(**stored) if stored else None


def logs_task_end() -> bool:
    """Return True if the lines of `log_task_end` are enabled."""
    return _ends.isEnabledFor(logging.INFO)


def log_task_end(task_uuid: str, state: str, correlation: str, namespace: str, place: TraceContext | None) -> None:
    fields = ids_of_task(task_uuid, correlation, namespace, place) | {"state": state}
    log_line(_ends, logging.INFO, f"Task finalized: task_uuid={task_uuid}", fields)


def log_closed_tasks(tasks: Iterable[TaskClosed]) -> None:
    for task in tasks:
        place = TraceContext(task.traceparent, task.tracestate) if task.traceparent else None
        log_task_end(task.task_uuid, task.state, task.correlation_id, task.namespace, place)


def logs_enqueue() -> bool:
    """Return True if the lines of `log_enqueued` are enabled."""
    return _engine.isEnabledFor(logging.DEBUG)


async def enqueued(connection: Statements, hints: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arguments of `log_enqueued` for steps whose messages were sent after the commit."""
    try:
        return await connection.call("tasker.enqueued_v1(%s::jsonb)", to_json({"send": hints}))
    except DatabaseError as error:
        _engine.log(level_of(error), "enqueued_steps_not_told count=%s reason=%s", len(hints), error)
        return {}


def log_enqueued(answer: Mapping[str, Any], names: QueueNames, began: float) -> None:
    """Log each step that a write enqueued; the write began at `began` (`perf_counter`).

    `answer` has the answer of `tasker.enqueued_v1`, if the lines are enabled.
    """
    duration_ms = round((perf_counter() - began) * 1000)
    for row in answer.get("enqueued") or ():
        log_fields = {
            "operation": "step_enqueued",
            "duration_ms": duration_ms,
            "queue": names.step_queue(row["namespace"]),
        }
        log_line(_engine, logging.DEBUG, f"Step enqueued: step_uuid={row['step']}", _ids_of_enqueued(row) | log_fields)


def _ids_of_enqueued(row: Mapping[str, Any]) -> dict[str, Any]:
    ids = {"correlation_id": row["correlation"], "task_uuid": row["task"], "step_uuid": row["step"]}
    about = {"namespace": row["namespace"], "step_name": row["name"], "attempt": row["attempt"]}
    return {**ids, **about, **of_trace(trace_of(row["trace"]))}


def log_unknown(source: str, step: str) -> None:
    """Log a message that points to a step of another database: two fleets that share a broker must notice (rule 6)."""
    _engine.warning(
        "message_of_unknown_step from=%s step=%s reason=this database has no such step; if another database's fleet "
        "uses this broker, give each a prefix of its own (tasker task refused shows what was quarantined)",
        source,
        step,
    )
