"""A shop in which an operator has something to do, and nobody else does anything."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import psycopg

import tasker
from tasker.operations.dead_letters import FailureSelection
from tasker.template import compile_text
from tests.integration.api.program import ORDERS, WAITING, registered

UNDOABLE = """
name: undoable
namespace: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: check, handler: shop.check_nothing, compensate: shop.check_nothing}
  - {name: charge, dependencies: [check], handler: shop.refuse}
"""
ASKED = """
name: asked
namespace: shop
version: 1.0.0
identity_strategy: always_unique
steps: [{name: approve, type: approval, timeout: never}]
"""
CLOCKS = ("operator_actions", "workers")
"""What is written beside what is done."""


@dataclass(frozen=True)
class Scene:
    """`failed` has a step in error, its `step`, and a dead letter, its `entry`; `waiting` waits for its handler.

    `undoable` failed after a step that has a compensation; `asked` waits for a decision.
    """

    app: tasker.App
    failed: str
    step: str
    entry: str
    waiting: str
    undoable: str
    asked: str
    replay: str
    subscriber: str

    def rows(self, statement: str, *params: object) -> list[tuple[object, ...]]:
        """What another session reads."""
        with psycopg.connect(self.app.database_url, autocommit=True) as session:
            return _read(session, statement, *params)

    def everything(self) -> dict[str, object]:
        """What is in the tables."""
        names = """select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables
          where schemaname = 'tasker' and tablename <> all (%s) order by 1"""
        content = "select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from {} t"
        with psycopg.connect(self.app.database_url, autocommit=True) as session:
            tables = [str(name) for (name,) in _read(session, names, list(CLOCKS))]
            return {name: _read(session, content.format(name)) for name in tables}


def _read(session: psycopg.Connection[Any], statement: str, *params: object) -> list[tuple[object, ...]]:
    return session.execute(statement.encode(), params or None).fetchall()


async def set_up(url: str) -> dict[str, str]:
    """Make a scene in that database: what is in it, by the names of `Scene`. Who worked on it has stopped."""
    async with tasker.App(url, registry=registered()) as shop:
        for template in (ORDERS, WAITING, UNDOABLE, ASKED):
            await shop.plans.register(compile_text(template).plans[0], force=True)
        tasks = [(await shop.submit("shop/orders", {"amount": -amount})).task_uuid for amount in (1, 2)]
        undoable = (await shop.submit("shop/undoable", {"card": {"number": "1"}})).task_uuid
        asked = (await shop.submit("shop/asked", {})).task_uuid
        for task in (*tasks, undoable):
            await shop.wait(task)
        while not await shop.approvals.list():
            await asyncio.sleep(0.02)
    async with tasker.App(url, work=False) as app:
        entry = await app.dead_letters.of_task(tasks[0])
        plan = await app.replays.begin(FailureSelection(), rate=0.001, actor="setting", reason="the scene")
        (step, *_) = await app.views.steps(tasks[0])
        waiting = (await app.submit("nobody/waiting", {})).task_uuid
        await app.domain_events.deliveries.stop("billing", actor="setting", reason="the scene")
        for schedule in ("shop/orders/nightly", "shop/orders/idle"):
            await app.schedules.create(schedule, {"cron": "0 2 * * *", "context": {"amount": 1}})
        await app.schedules.pause("shop/orders/idle")
    return {
        "failed": tasks[0],
        "step": step.step_uuid,
        "entry": entry.dlq_entry_uuid,
        "waiting": waiting,
        "undoable": undoable,
        "asked": asked,
        "replay": str(plan.replay_uuid),
        "subscriber": "billing",
    }
