"""Steps that wait for a thread of their worker: nobody takes them away meanwhile, and no attempt is used."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.orchestration.sweep import SweepSettings
from tasker.settings.listening import ReadinessTiming
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.process.programs import eventually, runtime_of, settings

TEMPLATE = """
name: blocking
namespace_name: ears
version: "1.0.0"
steps:
  - {{name: only, handler: ears.blocks, on_worker_lost: fail, timeout_seconds: {timeout}}}
"""
BUSY = SweepSettings(timing=ReadinessTiming(fallback_polling_interval_seconds=0.05))


class Blocks:
    """A plain function, which needs a thread: it blocks until it is let go; `tasks` have begun."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.tasks: list[str] = []

    def work(self, context: Any) -> dict[str, Any]:
        self.tasks.append(context.task_uuid)
        self.let_go.wait(60)
        return {"done": True}


def plan(timeout: float) -> Plan:
    (compiled,) = compile_text(TEMPLATE.format(timeout=timeout)).plans
    return compiled


@asynccontextmanager
async def one_thread(url: str, handler: Blocks, grace_ms: int) -> AsyncIterator[tasker.App]:
    """A worker with a single thread, which sweeps all the time."""
    registry = HandlerRegistry()
    registry.register("ears.blocks", lambda context: handler.work(context))
    chosen = settings(DeploymentMode.HYBRID, threads=1, grace_ms=grace_ms)
    async with tasker.App(url, registry=registry, settings=chosen, sweeps=BUSY, configuration=UNCONFIGURED) as app:
        try:
            yield app
        finally:
            handler.let_go.set()


def steps(url: str) -> list[tuple[Any, ...]]:
    """State, attempts, and whether the step has more time than its claim gave it, in the order of claims."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select s.state, s.attempts, s.deadline_at - s.started_at > interval '60.2 seconds' "
            "from tasker.workflow_steps s order by s.started_at, s.workflow_step_uuid"
        ).fetchall()


def repairs(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("select kind, repaired from tasker.repairs where repaired > 0").fetchall())


async def test_a_step_that_no_thread_is_free_for_in_time_goes_back_and_runs_at_its_first_attempt(
    database_url: str,
) -> None:
    """The handler holds the only thread until every other step has been given back; sweeps look all the time."""
    blocks = Blocks()
    async with one_thread(database_url, blocks, grace_ms=3000) as app:
        worker = runtime_of(app).worker
        first = await app.submit(plan(3600), idempotency_key="first")
        await eventually(lambda: len(blocks.tasks) == 1, "it holds the thread")
        others = [await app.submit(plan(2), idempotency_key=f"{number}") for number in range(3)]
        await eventually(lambda: worker.released_count >= 3, "the others are given back")
        assert worker.slots.holds["no_place"] >= 1
        blocks.let_go.set()
        for each in (first, *others):
            report = await app.wait(each.task_uuid, timeout=60)
            assert (report.status, report.steps["only"].attempts) == ("complete", 1)
    assert repairs(database_url) == {}


async def test_a_step_that_got_a_thread_late_has_its_whole_time_from_then_on(database_url: str) -> None:
    blocks = Blocks()
    async with one_thread(database_url, blocks, grace_ms=200) as app:
        for key in ("first", "second"):
            await app.submit(plan(60), idempotency_key=key)
        await eventually(lambda: [row[0] for row in steps(database_url)] == ["in_progress"] * 2, "both are claimed")
        await eventually(lambda: waited(database_url), "the second has waited for most of its grace")
        assert [row[2] for row in steps(database_url)] == [False, False]
        blocks.let_go.set()
        blocks.let_go = threading.Event()
        await eventually(lambda: len(blocks.tasks) == 2, "the second has the thread")
        assert True in [row[2] for row in steps(database_url)]
        blocks.let_go.set()


def waited(url: str) -> bool:
    with psycopg.connect(url) as connection:
        waits = "select min(now() - started_at) > interval '0.3 s' from tasker.workflow_steps"
        row = connection.execute(waits).fetchone()
        return row == (True,)
