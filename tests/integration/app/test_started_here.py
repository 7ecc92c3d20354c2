"""A program that submits and works runs the first steps at once; what becomes of them when an answer does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

import tasker
from tasker.clock import new_uuid
from tasker.engine.answers import SubmitAnswer
from tasker.errors import ConnectionLost
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.app.program import value
from tests.support.worker_settings import worker_settings

FIRST = "select path from tasker.step_transition_log order by task_uuid desc, sort_key limit 1"
CHAIN = """
name: chain
namespace: caller
version: 1.0.0
steps:
  - {name: first, handler: greet}
  - {name: second, handler: greet, dependencies: [first]}
  - {name: third, handler: greet, dependencies: [second]}
"""
HELD = "select count(*) from tasker.violations_v1('{}')"


@pytest.fixture(params=["pgmq", "memory"])
async def app(request: pytest.FixtureRequest, database_url: str, registry: HandlerRegistry) -> Any:
    async with tasker.App(database_url, registry=registry, backend=request.param) as running:
        yield running


async def test_its_first_step_never_waits_in_the_queue(app: tasker.App, plan: Plan) -> None:
    """Although its namespace is served from then on, and looked into."""
    report = await app.run(plan, {"name": "Ada"}, timeout=60)

    assert report.results == {"greet": {"text": "Hello, Ada!"}}
    assert value(app.database_url, FIRST) == "pending>enqueued>in_progress"


async def test_the_first_steps_of_tasks_that_are_run_beside_each_other_never_wait_in_the_queue(
    app: tasker.App,
) -> None:
    """Whatever is under way when one is submitted: a look into the queue, a write of results, another submission."""
    (chain,) = compile_text(CHAIN).plans

    async def one_after_the_other(first: int) -> None:
        for number in range(10):
            await app.run(chain, {"name": f"{first} {number}"}, timeout=60)

    await asyncio.gather(*(one_after_the_other(first) for first in range(8)))

    assert value(app.database_url, "select count(*) from tasker.workflow_steps where state = 'complete'") == 240
    assert value(app.database_url, "select count(*) from tasker.workflow_steps where hint_count > 0") == 0


async def test_a_worker_without_a_free_slot_leaves_it_to_the_queue(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with tasker.App(database_url, registry=registry, settings=worker_settings(concurrency=1)) as app:
        assert app.runtime is not None
        reserved = app.runtime.worker.slots.reserve()
        submitted = await app.submit(plan, {"name": "Ada"})
        app.runtime.worker.slots.settle(reserved, 0)
        report = await app.wait(submitted.task_uuid, timeout=60)

    assert report.succeeded
    assert value(database_url, FIRST) == "pending>enqueued"


async def test_a_task_whose_answer_was_lost_runs_without_costing_an_attempt(
    app: tasker.App, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = asyncio.Event()

    async def loses(answer: SubmitAnswer) -> SubmitAnswer:
        lost.set()
        raise ConnectionLost("the answer did not come")

    _then(app, monkeypatch, loses)
    while not lost.is_set():
        report = await app.run(plan, {"name": "Ada"}, timeout=60)

    assert report.succeeded
    assert report.steps["greet"].attempts == 1
    assert value(app.database_url, HELD) == 0


async def test_a_submission_that_is_cancelled_behind_its_commit_leaves_no_step_behind(
    app: tasker.App, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = asyncio.Event()

    async def waits(answer: SubmitAnswer) -> SubmitAnswer:
        committed.set()
        await asyncio.Event().wait()
        return answer

    _then(app, monkeypatch, waits)
    while not committed.is_set():
        submitting = asyncio.create_task(app.submit(plan, {"name": "Ada"}, idempotency_key=new_uuid()))
        told = asyncio.create_task(committed.wait())
        await asyncio.wait({submitting, told}, return_when=asyncio.FIRST_COMPLETED)
    submitting.cancel()
    await asyncio.gather(submitting, return_exceptions=True)

    task = value(app.database_url, "select task_uuid::text from tasker.tasks order by task_uuid desc limit 1")
    assert (await app.wait(task, timeout=60)).steps["greet"].attempts == 1


async def test_claims_of_an_incarnation_that_was_given_up_meanwhile_are_not_started(
    app: tasker.App, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.runtime is not None
    worker, given_up = app.runtime.worker, asyncio.Event()
    before = worker.identity

    async def is_another(answer: SubmitAnswer) -> SubmitAnswer:
        given_up.set()
        worker.begin_as(new_uuid())
        return answer

    _then(app, monkeypatch, is_another)
    while not given_up.is_set():
        submitted = await app.submit(plan, {"name": "Ada"}, idempotency_key=new_uuid())

    assert submitted.task_uuid not in [running.claim.task_uuid for running in worker.claims._in_hand.values()]
    worker.begin_as(before)


def _then(app: tasker.App, monkeypatch: pytest.MonkeyPatch, then: Any) -> None:
    """After the first submission that claims is committed, this happens."""
    submit = app._engine.submit

    async def once(args: Mapping[str, Any]) -> SubmitAnswer:
        answer: SubmitAnswer = await submit(args)
        if answer.claims:
            monkeypatch.undo()
            answer = await then(answer)
        return answer

    monkeypatch.setattr(app._engine, "submit", once)
