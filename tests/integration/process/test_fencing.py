"""A worker that lost its lease gives up what it holds, takes nothing more under its old name, and goes on anew."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.engine.exchange import AdvanceResult, CompletingWorker, Result
from tasker.errors import DatabaseUnavailable
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.messaging.service import MessagingService
from tasker.process.status import observed_worker
from tasker.services.submission.submit import Submission
from tests.integration.process.programs import eventually, plan, runs, runtime_of, settings, submitting, working


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


async def test_a_handler_that_blocks_its_thread_does_not_keep_a_fenced_worker_from_going_on(database_url: str) -> None:
    blocks, begun = threading.Event(), threading.Event()

    def work(context: Any) -> dict[str, Any]:
        if not begun.is_set():
            begun.set()
            blocks.wait(300)
        return {"done": True}

    registry = HandlerRegistry()
    registry.register("ears.work", work)
    chosen = settings(DeploymentMode.HYBRID, threads=1, timeout_ms=600_000)
    async with tasker.App(database_url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        try:
            runtime = runtime_of(app)
            await runtime.serve("ears")
            first = await app.submit(plan())
            assert await asyncio.to_thread(begun.wait, 60)
            former = runtime.worker.identity
            runtime.fenced()
            second = await app.submit(plan(), idempotency_key="second")
            for each in (first, second):
                assert (await app.wait(each.task_uuid, timeout=120)).status == "complete"
            assert runtime.worker.identity != former
            left_behind = observed_worker(runtime, registry, []).load().left_behind
            assert left_behind == 1, "it blocks its thread still"
            with psycopg.connect(database_url) as admin:
                rows = admin.execute("select worker_uuid::text from tasker.workers where stopped_at is null").fetchall()
            assert rows == [(runtime.worker.identity,)], "the registry knows that the former one is gone"
        finally:
            blocks.set()


@pytest.mark.parametrize("result_path", ["inline", "queued"])
async def test_a_result_that_a_worker_could_not_store_before_it_was_fenced_is_accepted_afterwards(
    database_url: str, result_path: str
) -> None:
    """An outage was longer than the lease; the token is current as long as no sweep has taken the step."""

    async def work(context: Any) -> dict[str, Any]:
        return {"done": True}

    registry = HandlerRegistry()
    registry.register("ears.work", work)
    chosen = settings(DeploymentMode.HYBRID, result_path=result_path)
    async with tasker.App(database_url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        runtime = runtime_of(app)
        await runtime.serve("ears")
        runtime.upkeep._sweep_at = math.inf
        former, tried = runtime.worker.identity, asyncio.Event()
        store = runtime.execution.collector._sink.process

        async def away(results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
            if runtime.worker.identity == former:
                tried.set()
                raise DatabaseUnavailable("away for longer than the lease")
            return await store(results, caller, wait=wait)

        runtime.execution.collector._sink.process = away  # type: ignore[method-assign]
        task = await app.submit(plan())
        await asyncio.wait_for(tried.wait(), 60)
        runtime.fenced()
        assert (await app.wait(task.task_uuid, timeout=60)).status == "complete"
        assert runtime.worker.identity != former
    with psycopg.connect(database_url) as admin:
        attempts = admin.execute("select max(attempts) from tasker.workflow_steps").fetchone()
        assert admin.execute("select count(*) from tasker.refused_results").fetchone() == (0,)
    assert attempts == (1,), "nothing ran twice"


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
        engine = runtime.execution.claimer._engine
        original = engine.claim

        async def slow_claim(args: Any) -> Any:
            answer = await original(args)
            if answer.claims:
                claimed.set()
                await may_answer.wait()
            return answer

        engine.claim = slow_claim  # type: ignore[method-assign]
        await runtime.serve("ears")  # not before: a look that is under way already would take the step unseen
        await app.submit_many(plan(), [Submission({})])  # through the queue
        await asyncio.wait_for(claimed.wait(), 60)
        stopping = asyncio.create_task(runtime.stop())
        await asyncio.sleep(0)
        may_answer.set()
        await stopping
    with psycopg.connect(database_url) as admin:
        states = admin.execute("select name, state, attempts from tasker.workflow_steps order by name").fetchall()
    assert ("first", "in_progress", 1) not in states


async def test_a_stop_lets_the_look_at_parked_results_end_so_that_no_message_stays_hidden(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, may_go_on = asyncio.Event(), asyncio.Event()
    original = MessagingService.receive_step_results

    async def slow_receive(*args: Any) -> Any:
        messages = await original(*args)
        if messages:
            looking.set()
            await may_go_on.wait()
        return messages

    monkeypatch.setattr(MessagingService, "receive_step_results", slow_receive)

    async def work(context: Any) -> dict[str, Any]:
        return {"done": True}

    registry = HandlerRegistry()
    registry.register("ears.work", work)
    chosen = settings(DeploymentMode.HYBRID, result_path="queued")
    async with tasker.App(database_url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        runtime = runtime_of(app)
        await runtime.serve("ears")
        await app.submit(plan())
        await asyncio.wait_for(looking.wait(), 60)
        stopping = asyncio.create_task(runtime.stop())
        await eventually(lambda: runtime.actors.actors[0]._draining, "it is drained")
        may_go_on.set()
        await stopping
    with psycopg.connect(database_url) as admin:
        parked = "select count(*) from tasker.workflow_steps where state = 'enqueued_for_orchestration'"
        assert admin.execute(parked).fetchone() == (0,), "what was received was dealt with"


async def test_nothing_is_claimed_while_the_lease_cannot_be_renewed(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tasker")
    role = f"limited_{urlsplit(database_url).path[1:]}"
    url = database_url.replace("postgres@", f"{role}@")
    chosen = settings(DeploymentMode.HYBRID, lease_ms=1000)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(f"create role {role} login in role postgres")
        try:
            async with (
                working(url, chosen) as app,
                submitting(database_url) as program,
            ):
                runtime = runtime_of(app)
                await runs(app)
                first = runtime.worker.identity
                admin.execute(f"alter role {role} connection limit 0")
                admin.execute("""
                    select pg_terminate_backend(pid) from pg_stat_activity
                    where application_name = 'tasker lease' and datname = current_database()""")
                await eventually(
                    lambda: caplog.text.count("service_backing_off service=Runtime._begin_anew") > 2, "it waits"
                )
                second, health = runtime.worker.identity, runtime.health()
                task = await program.submit(plan(), idempotency_key="meanwhile")
                await eventually(
                    lambda: caplog.text.count("service_backing_off service=Runtime._begin_anew") > 4, "it waits"
                )
                state = (await program.tasks.report(task.task_uuid)).steps["first"].state
                admin.execute(f"alter role {role} connection limit -1")
                report = await program.wait(task.task_uuid)
                last = runtime.worker.identity
        finally:
            admin.execute(f"drop role {role}")

    assert second != first, "its lease was lost"
    assert last == second, "it keeps its identity while it waits"
    assert state == "enqueued"
    assert {step.attempts for step in report.steps.values()} == {1}
    assert "the lease cannot be renewed: " in health.reason
    assert "too many connections for role" in health.reason
    lines = [record for record in caplog.records if record.message.startswith("lease_not_renewed")]
    assert [record.levelname for record in lines] == ["WARNING"]
