"""A worker that lost its lease gives up what it holds, takes nothing more under its old name, and goes on anew."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handler import HandlerRegistry
from tasker.lifecycle.deployment import DeploymentMode
from tests.integration.deployment.ears import eventually, plan, runs, runtime_of, settings


async def test_a_fenced_worker_takes_nothing_under_its_old_name_and_goes_on_as_a_new_one(database_url: str) -> None:
    begun, held_up = asyncio.Event(), asyncio.Event()

    async def work(context: Any) -> dict[str, Any]:
        if not begun.is_set():
            begun.set()
            try:
                await held_up.wait()
            except asyncio.CancelledError:
                await held_up.wait()  # a handler that does not end when it is told to
                raise
        return {"done": True}

    registry = HandlerRegistry()
    registry.register("ears.work", work)
    chosen = settings(DeploymentMode.HYBRID, lease_ms=1000)
    async with tasker.App(database_url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        runtime = runtime_of(app)
        await runtime.serve("ears")
        first = await app.submit(plan())
        await asyncio.wait_for(begun.wait(), 60)
        former = runtime.worker.identity
        take_away(database_url, former)
        await eventually(lambda: runtime.worker.slots.holds["fenced"] == 1, "it is fenced")
        second = await app.submit(plan(), idempotency_key="second")
        held_up.set()
        for each in (first, second):
            assert (await app.wait(each.task_uuid, timeout=60)).status == "complete"
        assert runtime.worker.identity != former
        await runs(app)
    with psycopg.connect(database_url) as admin:
        rows = admin.execute(
            "select count(*) from tasker.step_transition_log l join tasker.tasks t using (task_uuid) "
            "where l.worker_uuid = %s and t.task_uuid = %s",
            (former, second.task_uuid),
        ).fetchone()
    assert rows == (0,), "the second task is the new worker's alone"


def take_away(url: str, worker: str) -> None:
    """End the registration as an operator would who believes that the worker is gone."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "update tasker.workers set stopped_at = now(), lease_until = now() where worker_uuid = %s", (worker,)
        )


async def test_a_stop_waits_for_the_answer_of_a_claim_that_is_under_way(database_url: str) -> None:
    """Its steps run or are given back; none is left to be lost with the lease."""
    claimed, may_answer = asyncio.Event(), asyncio.Event()

    async def work(context: Any) -> dict[str, Any]:
        return {"done": True}

    registry = HandlerRegistry()
    registry.register("ears.work", work)
    chosen = settings(DeploymentMode.HYBRID)
    async with tasker.App(database_url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        runtime = runtime_of(app)
        await runtime.serve("ears")
        engine = runtime._claimer._engine
        original = engine.claim

        async def slow_claim(args: Any) -> Any:
            answer = await original(args)
            if answer.get("claims"):
                claimed.set()
                await may_answer.wait()
            return answer

        engine.claim = slow_claim  # type: ignore[method-assign]
        await app.submit(plan())
        await asyncio.wait_for(claimed.wait(), 60)
        stopping = asyncio.create_task(runtime.stop())
        await asyncio.sleep(0)
        may_answer.set()
        await stopping
    with psycopg.connect(database_url) as admin:
        states = admin.execute("select name, state, attempts from tasker.workflow_steps order by name").fetchall()
    assert ("first", "in_progress", 1) not in states
