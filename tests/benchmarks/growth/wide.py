"""A task of many steps side by side, joined by one step: reading it, running it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import tasker
from tasker.db.sql_files import query
from tasker.handlers.decisions import BatchConfig
from tasker.handlers.decorators import batch_analyzer, batch_worker, step_handler
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.tasks.read import REPORT
from tasker.template import compile_text
from tests.benchmarks.growth.case import Case, Prepare
from tests.support.engine_fixture import Lab, ok
from tests.support.random_plans import Spec

FILLED = """insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, bytes, created_at)
  select task_uuid, ordinal, workflow_step_uuid, name, '{"value": 1}', 29, created_at from tasker.workflow_steps"""
LOGGED = """insert into tasker.step_moves (workflow_step_uuid, path, sort_key, attempt, claim_token, execution_time_ms,
    created_at)
  select workflow_step_uuid, tasker.step_path('in_progress', 'ok'), 5, 1, 1, 5, created_at
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

        def read() -> None:
            text = REPORT if name == "report" else query(file, name)
            rows = lab.one.connection.execute(text, {"task": task, **params}).fetchall()
            assert len(rows[0][0]["steps"] if file == "tasks" else rows) == width + 2, len(rows)

        return read

    return prepare


def parked(lab: Lab, width: int) -> Callable[[], Any]:
    """A hundred parked results are read by an orchestrator."""
    task = wide(lab, width)
    lab.one.execute(
        """update tasker.workflow_steps set state = 'in_progress', claim_token = 1, worker_uuid = %s
          where task_uuid = %s and ordinal > 0""",
        lab.one.worker,
        task,
    )
    rows = lab.one.rows(
        "select workflow_step_uuid, name from tasker.workflow_steps where task_uuid = %s and ordinal between 1 and 100",
        task,
    )
    items = [ok({"step": str(step), "task": task, "token": 1, "name": name}) for step, name in rows]
    lab.one.core("park", {"worker": lab.one.worker, "items": items})
    lab.one.execute(f"{LOGGED} where state <> 'enqueued_for_orchestration'")

    def read() -> None:
        assert len(lab.one.core("parked", {"steps": [item["s"] for item in items]})["items"]) == len(items) > 0

    return read


def claim(lab: Lab, width: int) -> Callable[[], Any]:
    """A hundred steps are claimed of a task in which as many have a result of a kilobyte as it is wide."""
    names = [f"s{number:05}" for number in range(width)]
    pairs = (Spec(f"t{name}", depends_on=(name,)) for name in names)
    task = lab.submit_one(lab.plan(*map(Spec, names), *pairs, name="pairs"))
    lab.one.execute(
        """update tasker.workflow_steps set unmet = 0,
          state = case when ordinal < %s then 'complete' else 'enqueued' end""",
        width,
    )
    lab.one.execute(FILLED.replace("'{\"value\": 1}'", "to_jsonb(repeat('x', 1000))") + " where state = 'complete'")
    lab.one.execute("analyze")
    steps = lab.one.rows(
        "select workflow_step_uuid from tasker.workflow_steps where task_uuid = %s and state = 'enqueued' limit 100",
        task,
    )

    def take() -> None:
        claims = lab.one.core("claim", lab.one.args(slots=100, steps=[str(row[0]) for row in steps]))["claims"]
        assert len(claims) == min(100, width), len(claims)

    return take


def ready(lab: Lab, width: int) -> Callable[[], Any]:
    """The result for which all but one step of the task wait: more become ready than the queue has room for."""
    wide(lab, width)
    lab.one.execute("truncate pgmq.q_worker_" + lab.namespace + "_queue")  # of the thousand small ones
    lab.one.execute("delete from tasker.tasks where total <> %s", width + 2)
    (first,) = lab.one.rows(
        """update tasker.workflow_steps set state = 'in_progress', claim_token = 1, worker_uuid = %s
          where name = 'first' returning workflow_step_uuid as step, task_uuid as task""",
        lab.one.worker,
    )
    item = ok({"step": str(first.step), "task": str(first.task), "token": 1, "name": "first"})

    def advance() -> None:
        assert not lab.one.advance(item).get("verdicts"), "accepted"
        counted = "select count(*) from tasker.workflow_steps where task_uuid = %s and unmet = 0"
        assert lab.one.value(counted, first.task) == width + 1

    return advance


def roots(lab: Lab, width: int) -> Callable[[], Any]:
    """A task is submitted whose steps all begin at once."""
    plan = lab.plan(*(Spec(f"s{number:05}") for number in range(width)), name="roots")
    lab.submit(plan, {})

    def submit() -> None:
        assert len(lab.submit(plan, {})) == 1

    return submit


BATCH = """
name: batch_%(mode)s
namespace: growth
version: 1.0.0
steps:
  - {name: cut, type: batchable, handler: growth.cut}
  - {name: work, type: batch_worker, handler: growth.work, dependencies: [cut], execution: {mode: %(mode)s}}
  - {name: join, type: deferred_convergence, handler: growth.join, dependencies: [work]}
"""


@batch_analyzer("growth.cut", worker_template="work")
async def cut(context: Any) -> BatchConfig:
    """As many batches as the input says, of one item each."""
    return BatchConfig(total_items=context.get_input("batches"), batch_size=1)


@batch_worker("growth.work")
async def work(batch_context: Any) -> dict[str, int]:
    """The number of the batch."""
    return {"batch": batch_context.start_cursor}


@step_handler("growth.join")
async def join(context: Any) -> dict[str, int]:
    """How many there were."""
    return {"batches": len(context.get_all_dependency_results("work_"))}


def batch(mode: str, lab: Lab, width: int) -> Callable[[], Any]:
    """A program runs so many batches, from the submission to the end, whose handlers run in this mode."""
    registry = HandlerRegistry()
    for handler in (cut, work, join):
        registry.register(handler._handler_class.handler_name, handler._handler_class)

    async def run() -> None:
        async with tasker.App(lab.url, registry=registry) as app:
            report = await app.run(compile_text(BATCH % {"mode": mode}).plans[0], {"batches": width})
        assert report.results["join"] == {"batches": width}

    return lambda: asyncio.run(run())


CASES = (
    Case("report", "steps", 20_000, 2.0, reading("tasks", "report")),
    Case(
        "client_steps", "steps", 20_000, 2.0, reading("client", "steps", step=None, results=True, limit=None, offset=0)
    ),
    Case("parked", "steps", 20_000, 0.1, parked),
    Case("claim", "results", 10_000, 0.2, claim),
    Case("ready", "steps", 20_000, 3.0, ready),
    Case("roots", "steps", 8_000, 2.0, roots),
    Case("batch", "batches", 8_000, 15.0, partial(batch, "async")),
    Case("batch_processes", "batches in child processes", 4_000, 25.0, partial(batch, "process")),
)
