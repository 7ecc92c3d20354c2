"""Changes of one write, reported to plugins.

The database is not queried for them. Side effects are reported as far as the answer names them: steps claimed and tasks
ended, but not steps enqueued for other workers.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from time import perf_counter, time
from typing import Any, TypeAlias

import orjson

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.states.step_changes import CHANGES
from tasker.engine.task_log import log_closed_tasks, logs_task_end
from tasker.errors import DatabaseError
from tasker.json_values import JsonText
from tasker.plugins.hook_arguments import StateTransition, TaskClosed, TasksSubmitted, TaskSubmitted, WriteCommitted
from tasker.resilience.outage import level_of
from tasker.template.plan import Plan

TARGETS = {kind: str(path[-1]) for kind, move in CHANGES.items() for path in move.paths[:1]}
"""Target state of each kind of change, from any former state. A ready step continues from `pending`."""
PARKED = {"ok": "enqueued_for_orchestration"} | dict.fromkeys(("retry", "fail"), "enqueued_as_error_for_orchestration")
"""Target states if a worker leaves its results to an orchestrator."""


Made: TypeAlias = Callable[..., StateTransition]
"""Factory of transitions of one write, with its times filled in."""


def transitions_of(
    function: str, args: Mapping[str, Any], answer: Mapping[str, Any], began: float
) -> tuple[StateTransition, ...]:
    """Return the transitions made by `tasker.FUNCTION_v1`, called at `began` (`perf_counter`), in their order.

    The result is empty if the answer has none. Reads the clock.
    """
    targets = {"advance": TARGETS, "park": PARKED}.get(function, {})
    created = answer.get("created") if function in ("submit", "fire_schedule") else ()
    answered_at = datetime.now(UTC)
    made = partial(
        StateTransition, asked_at=answered_at - timedelta(seconds=perf_counter() - began), answered_at=answered_at
    )
    changed, claimed = _changed(made, targets, args, answer), _claimed(made, args, answer)
    return (*_created(made, created), *changed, *claimed, *_ended(made, answer))


def closed_elsewhere(args: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the ended tasks with their states, except those for which the write reported a result of its own
    worker."""
    ended = answer.get("finished") or {}
    worker = args.get("worker")
    own_tasks = {item["t"] for item in args.get("items", ()) if item.get("w") == worker} if ended and worker else ()
    return {task: state for task, state in ended.items() if task not in own_tasks}


def _created(made: Made, tasks: Sequence[str] | None) -> Iterator[StateTransition]:
    yield from (made(task, None, "pending") for task in tasks or ())


def _changed(
    made: Made, targets: Mapping[str, str], args: Mapping[str, Any], answer: Mapping[str, Any]
) -> Iterator[StateTransition]:
    refused = answer.get("verdicts") or {}
    for item in args.get("items", ()) if targets else ():
        if item["s"] not in refused and item["kind"] in targets:
            failure = _failure(item.get("e"))
            state = targets[item["kind"]]
            yield made(item["t"], item["s"], state, worker=item.get("w"), token=item.get("k"), **failure)


def _failure(error: Any) -> dict[str, str | None]:
    if error is None:
        return {}
    details = orjson.loads(error.text) if isinstance(error, JsonText) else error
    return {"error_type": details.get("error_type"), "error_message": details.get("message")}


def _claimed(made: Made, args: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[StateTransition]:
    for row in answer.get("claims") or ():
        yield made(row["task"], row["step"], "in_progress", worker=args.get("worker"), token=row["token"])


def _ended(made: Made, answer: Mapping[str, Any]) -> Iterator[StateTransition]:
    yield from (made(task, None, state) for task, state in (answer.get("finished") or {}).items())


RESULTS = frozenset(("ok", "retry", "fail"))
"""Kinds of change that report the outcome of an attempt."""
NAMED_FAILURES = frozenset(("timeout", "worker_lost"))
"""Failures counted by their type; all others are counted as `error`."""


def written(function: str, args: Mapping[str, Any], answer: Mapping[str, Any], began: float) -> WriteCommitted:
    """Return the counts of `tasker.FUNCTION_v1`, called at `began` (`perf_counter`)."""
    duration_ms = (perf_counter() - began) * 1000
    accepted = list(_accepted(function, args, answer))
    worker, finished = args.get("worker"), answer.get("finished") or {}
    return WriteCommitted(
        function,
        duration_ms,
        queued=tuple((namespace, count) for namespace, count in (answer.get("sent") or {}).items() if count),
        unsent=answer.get("unsent") or 0,
        claimed=len(answer.get("claims") or ()),
        results=tuple(Counter(map(_result_type, accepted)).items()),
        own=sum(item.get("w") == worker for item in accepted) if worker else 0,
        ended=tuple(Counter(finished.values()).items()),
        lasted=_lasted(finished) if finished else (),
    )


def _lasted(finished: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    now_ms = time() * 1000
    return tuple([(state, max(0.0, now_ms - _created_ms(task))) for task, state in finished.items()])


def _created_ms(task_uuid: str) -> int:
    """Decode the creation time from the first 48 bits of a task's id."""
    return int(task_uuid[:8] + task_uuid[9:13], 16)


def _accepted(function: str, args: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if function not in ("advance", "park"):
        return
    refused = answer.get("verdicts") or {}
    yield from (item for item in args["items"] if item["kind"] in RESULTS and item["s"] not in refused)


def _result_type(item: Mapping[str, Any]) -> str:
    if item["kind"] == "ok":
        return "success"
    error = item.get("e") or {}
    details = orjson.loads(error.text) if isinstance(error, JsonText) else error
    kind = details.get("error_type")
    return kind if kind in NAMED_FAILURES else "error"


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
        self, args: Mapping[str, Any], answer: Mapping[str, Any], connection: Statements, *, logged: bool
    ) -> None:
        """Publish tasks that this write ended without a result of this process. Errors are only logged.

        The ends of all tasks are logged, unless the component that reported the results does so (`logged`).
        """
        elsewhere = closed_elsewhere(args, answer) if self.on_closed is not None else {}
        unlogged = answer["finished"] if logs_task_end() and not logged else {}
        if not (tasks := {**elsewhere, **unlogged}):
            return
        try:
            rows = await connection.execute(query("tasks", "closed"), {"tasks": [*tasks]})
        except DatabaseError as error:
            _log.log(level_of(error), "task_closed_hook_failed count=%s reason=%s", len(tasks), error)
            return
        closed = [TaskClosed(task, tasks[task], *more) for task, *more in rows]
        if self.on_closed is not None and elsewhere:
            self.on_closed(tuple(task for task in closed if task.task_uuid in elsewhere))
        log_closed_tasks(task for task in closed if task.task_uuid in unlogged)

    def submitted(self, plan: Plan, created: Iterable[TaskSubmitted], began: float) -> None:
        """Publish the created tasks of a template, submitted at `began` (`perf_counter`)."""
        if self.on_submitted is not None and (tasks := tuple(created)):
            duration_ms = (perf_counter() - began) * 1000
            now = datetime.now(UTC)
            self.on_submitted(TasksSubmitted(plan.namespace, plan.name, len(tasks), duration_ms, tasks, now))
