"""What handlers publish themselves: once with the result that is accepted, whatever is killed on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import tasker
from tasker.template import compile_text
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.holding import drop_writes, held, waiting
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("server", ["embedded"], indirect=True)]

ONE_STEP = """
name: pay
namespace: shop
version: 1.0.0
steps:
  - {name: pay, handler: pay, retry: {max_attempts: 9, backoff: fixed, backoff_base_ms: 1}}
"""
PAY = """
from tasker.step_handler import step_handler
from tasker.domain_events import publish_domain_event

@step_handler("pay")
def pay():
    publish_domain_event("card.charged", {"amount": 5})
    publish_domain_event("card.declined", {}, condition="failure")
    return {"paid": True}
"""
GROWING = """
name: grow
namespace: shop
version: 1.0.0
steps:
  - {name: route, type: decision, handler: Route}
  - {name: cut, type: batchable, dependencies: [route], handler: Cut}
  - {name: work, type: batch_worker, dependencies: [cut], handler: Work, execution: {mode: process}}
  - {name: end, type: deferred_convergence, dependencies: [work], handler: End}
"""
HANDLERS = """
from tasker.batch_processing import BatchableHandler
from tasker.errors import RetryableError
from tasker.step_handler import DecisionHandler, StepHandler, checkpoint_yield

class Route(DecisionHandler):
    def call(self, context):
        context.publish_domain_event("routed", {"to": "cut"})
        return self.decision_success(["cut"])

class Cut(BatchableHandler):
    def call(self, context):
        context.publish_domain_event("cut", {})
        return self.batch_analyzer_success(
            cursor_configs=self.create_cursor_ranges(20, batch_size=10), total_items=20, worker_template_name="work"
        )

class Work(BatchableHandler):
    def call(self, context):
        if not context.has_checkpoint():
            context.publish_domain_event("half", {"step": context.step_name})
            checkpoint_yield(5, 5)
        if not context.is_retry():
            raise RetryableError("once")
        context.publish_domain_event("whole", {"step": context.step_name})
        return self.success({})

class End(StepHandler):
    async def call(self, context):
        context.publish_domain_event("ended", {})
        return self.success({})
"""


def submit(url: str) -> None:
    async def one() -> None:
        async with tasker.App(url, work=False) as app:
            await app.submit(compile_text(ONE_STEP).plans[0], {})

    asyncio.run(one())


@pytest.mark.parametrize(
    ("write", "table", "end"),
    [
        ("finish", "tasker.domain_events", "is_dropped"),
        ("finish", "tasker.domain_events", "is_carried_out"),
        ("park", "tasker.parked_events", "is_dropped"),
        ("end", "tasker.domain_events", "is_carried_out"),
    ],
)
def test_a_process_that_is_killed_before_its_result_is_accepted_leaves_one_event_in_the_end(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path, write: str, table: str, end: str
) -> None:
    workflow = write_workflow(tmp_path / "pay", ONE_STEP, PAY)
    path = "inline" if write == "finish" else "queued"

    def start(name: str) -> None:
        if write == "end":
            fleet.orchestrator(name)
        else:
            fleet.worker(name, str(workflow), "--result-path", path, lease=1)

    if write == "end":
        fleet.worker("worker", str(workflow), "--result-path", path)
    if write == "park":
        fleet.orchestrator("orchestrator")
    submit(database_url)
    with held(database_url, table):
        start("doomed")
        until(lambda: bool(waiting(oracle, table)), "the write is held", show=lambda: fleet.log("doomed"))
        pids = waiting(oracle, table)
        fleet.kill("doomed")
        if end == "is_dropped":
            drop_writes(oracle, pids)
        assert oracle.value("select count(*) from tasker.domain_events") == 0
    start("another")
    until(lambda: oracle.finished() == 1, "the task is final", show=lambda: fleet.log("another"))

    assert oracle.rows("select name, payload from tasker.domain_events") == [("card.charged", {"amount": 5})]
    assert oracle.value("select count(*) from tasker.parked_events") == 0
    oracle.check_promises()


@pytest.mark.parametrize("result_path", ["inline", "queued"])
def test_decisions_batches_and_convergences_publish_each_event_once_over_retries_and_checkpoints(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path, result_path: str
) -> None:
    workflow = write_workflow(tmp_path / "grow", GROWING, HANDLERS)
    fleet.worker("worker", str(workflow), "--result-path", result_path)
    fleet.orchestrator("orchestrator")

    async def run() -> tuple[str, list[str], list[str]]:
        async with tasker.App(database_url, work=False) as app:
            task = await app.run("shop/grow", {}, timeout=240)
            events = (await app.domain_events.page(limit=100)).events
            return task.status, [event.event_name for event in events], [event.event_id for event in events]

    status, names, ids = asyncio.run(run())

    assert status == "complete", fleet.log("worker")
    assert (names[:2], sorted(names[2:-1]), names[-1]) == (["routed", "cut"], ["half"] * 2 + ["whole"] * 2, "ended")
    assert len(set(ids)) == len(ids)
    oracle.check_promises()
