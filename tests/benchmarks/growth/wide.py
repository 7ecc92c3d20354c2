"""A task of many steps side by side, joined by one step: reading it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasker.db.queries import query
from tests.benchmarks.growth.case import Case, Prepare
from tests.support.engine_fixture import Lab, ok
from tests.support.random_plans import Spec

FILLED = """insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, created_at)
  select task_uuid, ordinal, workflow_step_uuid, name, '{"value": 1}', created_at from tasker.workflow_steps"""
LOGGED = """insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token, execution_time_ms,
    created_at)
  select workflow_step_uuid, tasker.path_code('in_progress>enqueued_for_orchestration>complete'), 5, 1, 1, 5, created_at
  from tasker.workflow_steps"""


def wide(lab: Lab, width: int) -> str:
    """The task, among a thousand small ones, which is what the statistics tell of."""
    lab.submit(lab.chain(4), *({} for _ in range(1000)))
    lab.one.execute("analyze")
    names = [f"s{number:05}" for number in range(width)]
    plan = lab.plan(
        Spec("first"),
        *(Spec(name, depends_on=("first",)) for name in names),
        Spec("end", depends_on=tuple(names)),
        name="wide",
    )
    return lab.submit_one(plan)


def reading(file: str, name: str, **params: Any) -> Prepare:
    """A query about the task when every step has a result and a history."""

    def prepare(lab: Lab, width: int) -> Callable[[], Any]:
        task = wide(lab, width)
        lab.one.execute(FILLED)
        lab.one.execute(LOGGED)
        return lambda: lab.one.connection.execute(query(file, name), {"task": task, **params}).fetchall()

    return prepare


def parked(lab: Lab, width: int) -> Callable[[], Any]:
    """A hundred parked results are read by an orchestrator."""
    task = wide(lab, width)
    lab.one.execute(
        "update tasker.workflow_steps set state = 'in_progress', claim_token = 1 where task_uuid = %s and ordinal > 0",
        task,
    )
    rows = lab.one.rows(
        "select workflow_step_uuid, name from tasker.workflow_steps where task_uuid = %s and ordinal between 1 and 100",
        task,
    )
    items = [ok({"step": str(step), "task": task, "token": 1, "name": name}) for step, name in rows]
    lab.one.core("park", {"worker": lab.one.worker, "items": items})
    lab.one.execute(LOGGED)
    return lambda: lab.one.core("parked", {"steps": [item["s"] for item in items]})


CASES = (
    Case("report", "steps", 20_000, 2.0, reading("tasks", "report")),
    Case("client_steps", "steps", 20_000, 2.0, reading("client", "steps", step=None)),
    Case("parked", "steps", 20_000, 0.1, parked),
)
