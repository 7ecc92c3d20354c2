"""Log lines about tasks and steps that a process knows by identifier alone: whose they are the database says.

It is asked once for all that one write or one answer tells of, and only where somebody wants the lines.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from tasker.contracts.hook_arguments import TaskClosed
from tasker.contracts.tracing import TraceContext
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import DatabaseError
from tasker.log_lines import ids_of_task, log_line, of_trace
from tasker.messaging.queues import QueueNames
from tasker.resilience.outage import level_of
from tasker.services.engine.encoding import to_json

_engine, _ends = logging.getLogger("tasker.engine"), logging.getLogger("tasker.orchestration")

Ids = dict[str, Any]


async def read_task_ids(connection: Statements, tasks: Collection[str]) -> dict[str, Ids]:
    """What lines about these tasks say of them, by task. Where the database does not answer that is the identifier."""
    found: dict[str, Ids] = {task: {"task_uuid": task} for task in tasks}
    try:
        rows = await connection.execute(query("tasks", "whose"), {"tasks": [*tasks]}) if tasks else ()
    except DatabaseError as error:
        _engine.log(level_of(error), "lines_without_correlation tasks=%s reason=%s", len(tasks), error)
    else:
        found |= {row[0]: ids_of_task(row[0], row[1], row[2], trace_of(row[3])) for row in rows}
    return found


def trace_of(stored: Mapping[str, Any] | None) -> TraceContext | None:
    """The place in a trace as it is kept with a task."""
    return TraceContext(**stored) if stored else None


def logs_task_end() -> bool:
    """Whether anybody wants `log_task_end`."""
    return _ends.isEnabledFor(logging.INFO)


def log_task_end(task_uuid: str, state: str, correlation: str, namespace: str, place: TraceContext | None) -> None:
    """A line that a task is over."""
    fields = ids_of_task(task_uuid, correlation, namespace, place) | {"state": state}
    log_line(_ends, logging.INFO, f"Task finalized: task_uuid={task_uuid}", fields)


def log_closed_tasks(tasks: Iterable[TaskClosed]) -> None:
    """A line for each of these."""
    for task in tasks:
        place = TraceContext(task.traceparent, task.tracestate) if task.traceparent else None
        log_task_end(task.task_uuid, task.state, task.correlation_id, task.namespace, place)


def logs_enqueue() -> bool:
    """Whether anybody wants `log_enqueued`."""
    return _engine.isEnabledFor(logging.DEBUG)


async def enqueued(connection: Statements, hints: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What `log_enqueued` tells of steps whose hints were sent behind the commit."""
    try:
        return await connection.call("tasker.enqueued_v1(%s::jsonb)", to_json({"send": hints}))
    except DatabaseError as error:
        _engine.log(level_of(error), "enqueued_steps_not_told count=%s reason=%s", len(hints), error)
        return {}


def log_enqueued(answer: Mapping[str, Any], names: QueueNames, began: float) -> None:
    """A line for each step that a write sent to the queue, asked at `began` by `perf_counter`.

    `answer` holds what `tasker.enqueued_v1` answers, where the lines are wanted.
    """
    duration_ms = round((perf_counter() - began) * 1000)
    for row in answer.get("enqueued") or ():
        said = {"operation": "step_enqueued", "duration_ms": duration_ms, "queue": names.step_queue(row["namespace"])}
        log_line(_engine, logging.DEBUG, f"Step enqueued: step_uuid={row['step']}", _ids_of_enqueued(row) | said)


def _ids_of_enqueued(row: Mapping[str, Any]) -> dict[str, Any]:
    ids = {"correlation_id": row["correlation"], "task_uuid": row["task"], "step_uuid": row["step"]}
    about = {"namespace": row["namespace"], "step_name": row["name"], "attempt": row["attempt"]}
    return {**ids, **about, **of_trace(trace_of(row["trace"]))}


def log_unknown(source: str, step: str) -> None:
    """Say that a message pointed to a step of another database: two fleets that share a broker must notice (rule 6)."""
    _engine.warning(
        "message_of_unknown_step from=%s step=%s reason=this database has no such step; if another database's fleet "
        "uses this broker, give each a prefix of its own (tasker task refused shows what was set aside)",
        source,
        step,
    )
