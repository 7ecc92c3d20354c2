"""A subscriber that is killed in the middle: another one goes on, misses no event and repeats at most one."""

from __future__ import annotations

import json
import signal

import pytest

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tests.support.command_line import Running

TEMPLATE = """
name: shop
namespace_name: shop
version: 1.0.0
steps:
  - {name: pay, handler: pay, publishes_events: [{name: shop.paid}, {name: shop.seen, condition: always}]}
"""
TASKS = 10


@step_handler("pay")
async def pay() -> dict[str, bool]:
    return {"paid": True}


@pytest.mark.slow
async def test_a_subscriber_that_is_killed_loses_nothing(database_url: str) -> None:
    registry = HandlerRegistry()
    registry.register("pay", pay)
    (plan,) = compile_text(TEMPLATE).plans
    async with tasker.App(database_url, registry=registry) as app:
        tasks = [(await app.run(plan)).task_uuid for _ in range(TASKS)]

        arguments = ("events", "tail", "--subscriber", "billing", "--format", "json", "--database-url", database_url)
        first = Running.start(*arguments)
        assert first.process.stdout
        read = [json.loads(first.process.stdout.readline())["event_id"] for _ in range(7)]
        first.signal(signal.SIGKILL)
        rest = first.process.stdout.read()  # `communicate` leaves out what is in the buffer already
        read += [json.loads(line)["event_id"] for line in rest.splitlines()]
        first.process.communicate()

        tasks.append((await app.run(plan)).task_uuid)  # whatever the first one has read, something is left
        expected = [event.event_id for event in (await app.domain_events.page(limit=100)).events]
        assert len(expected) == 2 * len(tasks)

        again: list[str] = []
        await app._connection.execute("update tasker.event_subscribers set lease_until = now()")
        async for event in app.domain_events.subscribe("billing").events():
            again.append(event.event_id)
            if event.event_id == expected[-1]:
                break

    assert [*dict.fromkeys(read + again)] == expected, tasks
    assert len(read) + len(again) <= len(expected) + 1
