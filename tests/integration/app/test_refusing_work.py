"""Every way to submit honours the limit on ready steps, and what runs does not notice it."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest

import tasker
from tasker.errors import Overloaded
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import Submission
from tasker.settings.queues import DepthThresholds
from tasker.template.plan import Plan
from tests.support.registered import submit_registered

LIMITS = DepthThresholds(critical_threshold=3, overflow_threshold=6)


async def fill(url: str, plan: Plan, registry: HandlerRegistry) -> None:
    """As many ready steps as the limit allows, and nobody who runs them."""
    async with tasker.App(url, registry=registry, work=False) as app:
        await app.submit_many(plan, [Submission({"name": str(n)}, idempotency_key=str(n)) for n in range(3)])


async def test_however_a_task_is_submitted_it_is_refused_with_the_time_to_come_back(
    database_url: str, plan: Plan, registry: HandlerRegistry
) -> None:
    await fill(database_url, plan, registry)
    async with tasker.App(database_url, registry=registry, work=False, depth_limits=LIMITS) as app:
        with pytest.raises(Overloaded) as single:
            await app.submit(plan, {"name": "Ada"})
        with pytest.raises(Overloaded) as many:
            await app.submit_many(plan, [Submission({"name": "Ada"})])
        with psycopg.connect(database_url) as transaction, pytest.raises(Overloaded) as joined:
            await app.submit_in(transaction, plan, {"name": "Ada"})
        with pytest.raises(Overloaded) as requested:
            await submit_registered(app, plan, Submission({"name": "Ada"}))
        refused = app.admission.refused[plan.namespace]
        with psycopg.connect(database_url) as transaction:  # a task that begins later adds no load yet
            await app.submit_in(transaction, plan, {"name": "later"}, delay=3600)
        await app.submit(plan, {"name": "at noon"}, run_at=datetime(9999, 1, 1, 12, tzinfo=UTC))

    assert {error.value.retry_after for error in (single, many, joined, requested)} == {30}
    assert refused == 4
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from tasker.tasks").fetchone() == (5,)


async def test_urgent_tasks_are_taken_until_the_limit_of_overflow(
    database_url: str, plan: Plan, registry: HandlerRegistry
) -> None:
    await fill(database_url, plan, registry)
    boundless = DepthThresholds(critical_threshold=2**40, overflow_threshold=2**40)
    async with tasker.App(database_url, registry=registry, work=False, depth_limits=boundless) as app:
        assert await app.submit(plan, {"name": "Eve"}), "a limit beyond what a column holds is none"
        await app.tasks.cancel((await app.tasks.list())[0].task_uuid)
    async with tasker.App(database_url, registry=registry, work=False, depth_limits=LIMITS) as app:
        with pytest.raises(Overloaded):
            await app.submit_many(plan, [Submission({"name": "A"}, priority=1), Submission({"name": "B"})])
        await app.submit(plan, {"name": "Ada"}, priority=1)
        await app.submit_many(plan, [Submission({"name": "Bob"}, priority=2)])
        with psycopg.connect(database_url) as transaction:
            await app.submit_in(transaction, plan, {"name": "Cy"}, priority=1)
        with pytest.raises(Overloaded, match="has 6 ready steps, the limit is 6"):
            await app.submit(plan, {"name": "Di"}, priority=1)


async def test_work_above_the_limit_is_done_and_then_there_is_room_again(
    database_url: str, plan: Plan, registry: HandlerRegistry
) -> None:
    await fill(database_url, plan, registry)
    limits = DepthThresholds(critical_threshold=1, overflow_threshold=1)
    async with tasker.App(database_url, registry=registry, depth_limits=limits) as app:
        await app.plan(plan)
        tasks = await app.tasks.list()
        for task in tasks:
            await app.finished(task.task_uuid, timeout=60)
        report = await app.run(plan, {"name": "Ada"}, timeout=60)

    assert report.status == "complete"
