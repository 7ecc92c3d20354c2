"""What the page on domain events shows to readers that have no Tasker."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tests.docs.snippets import snippets
from tests.support.repository import ROOT

TEMPLATE = """
name: pay
namespace: payments
version: 1.0.0
steps:
  - {name: pay, handler: pay, publishes_events: [{name: payment.captured}]}
"""
QUEUED = """
select message->>'event_name', message->'metadata'->>'step_name', message->'payload'->>'amount', message->>'event_id'
from pgmq.q_payments_domain_events
where message->'metadata'->>'correlation_id' = %s and message->'metadata'->>'fired_at' > ''
"""


@step_handler("pay")
async def pay() -> dict[str, int]:
    return {"amount": 5}


async def test_the_forwarder_fills_the_queue_of_the_namespace_as_its_clients_expect_it(database_url: str) -> None:
    page = (ROOT / "docs/domain-events.md").read_text()
    (code,) = [each.text for each in snippets(page) if "async def forward" in each.text]
    names: dict[str, Any] = {}
    exec(code, names)
    registry = HandlerRegistry()
    registry.register("pay", pay)

    async with tasker.App(database_url, registry=registry) as app:
        task = await app.run(compile_text(TEMPLATE).plans[0], {})
        (event,) = (await app.domain_events.page(limit=10)).events
        forwarding = asyncio.create_task(names["forward"]("payments", database_url))
        try:
            found = await _queued(database_url, str(task.correlation_id), forwarding)
        finally:
            forwarding.cancel()
            await asyncio.gather(forwarding, return_exceptions=True)

    assert found == [("payment.captured", "pay", "5", event.event_id)]


async def _queued(url: str, correlation: str, forwarding: asyncio.Task[None]) -> list[Any]:
    async with asyncio.timeout(60), await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while not forwarding.done():
            known = await connection.execute("select to_regclass('pgmq.q_payments_domain_events') is not null")
            if (await known.fetchone() or [False])[0]:
                found = await (await connection.execute(QUEUED, [correlation])).fetchall()
                if found:
                    return found
            await asyncio.sleep(0.02)
    await forwarding
    return []
