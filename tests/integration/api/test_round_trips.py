"""What one request asks of the database: as much as it must, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict

import pytest_asyncio

from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.submission.submit import Submission, Submitter
from tasker.services.tasks.search import ClientViews
from tasker.template import compile_text
from tasker.template.plan import Plan, RetryPolicy
from tests.integration.api.program import ORDERS


@pytest_asyncio.fixture(loop_scope="module")
async def pool(database_url: str) -> AsyncIterator[Pool[Connection]]:
    made = Pool(lambda: Connection(database_url))
    yield made
    await made.close()


def orders(version: str = "1.0.0", description: str = "Checks an order") -> Plan:
    text = ORDERS.replace("1.0.0", version).replace("Checks an order", description)
    return compile_text(text).plans[0]


async def test_a_task_with_its_steps_is_read_with_one_statement(pool: Pool[Connection]) -> None:
    engine, plans = Engine(pool, MessagingService(load_backend("pgmq", {}))), PlanStore(pool)
    submitted = await Submitter(engine, plans, new_task_uuid).submit(orders(), Submission({"amount": 1}))
    views, before = ClientViews(engine, plans), pool.counts["acquires"]

    task = await views.task(submitted.task_uuid)

    assert pool.counts["acquires"] == before + 1
    assert [asdict(step) for step in task.steps] == [
        {name: value for name, value in asdict(step).items() if name not in ("results", "completed_at")}
        for step in await views.steps(submitted.task_uuid)
    ]
    assert [step.name for step in task.steps] == ["check", "charge"]
    assert task.context == {"amount": 1}


async def test_a_template_is_read_once_and_asked_for_each_time(pool: Pool[Connection]) -> None:
    for defaults in (None, RetryPolicy(max_attempts=7)):
        plans = PlanStore(pool, defaults)
        await PlanStore(pool).register(orders())
        first = await plans.find("shop", "orders")
        before = pool.counts["acquires"]

        assert (await plans.find("shop", "orders")).plan is first.plan
        assert pool.counts["acquires"] == before + 1


async def test_a_template_that_somebody_else_registers_is_found_at_once(pool: Pool[Connection]) -> None:
    plans, others = PlanStore(pool), PlanStore(pool)
    await others.register(orders())
    assert (await plans.find("shop", "orders")).plan.version == "1.0.0"

    await others.register(orders("1.1.0"))
    assert (await plans.find("shop", "orders")).plan.version == "1.1.0"

    await others.register(orders("1.1.0", "Checks everything"), force=True)
    found = (await plans.find("shop", "orders", "1.1.0")).plan
    assert found.description == "Checks everything and takes the money."
