"""What is read of a fleet of few and of many namespaces: statements and pages.

Statements may not grow at all; pages may where a read shows each namespace, by so many for each. Both are the same on
every machine. `make bench-growth ARGS="--only namespaces"`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import tuple_row

from tasker.db.session import Rows
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.fleet.brokers import broker_report
from tasker.services.fleet.doctor import Doctor
from tasker.services.fleet.overview import FleetOverview
from tasker.services.fleet.scaling import scaling
from tests.benchmarks.conditions import Conditions
from tests.support.engine_fixture import Direct, Lab
from tests.support.fleets.namespaces import fill, lose_messages, space
from tests.support.fleets.work import work_of

FEW, MANY = 5, 500
SHOWN = 5
"""Rows of a page, no more than there are namespaces in the smaller case."""


class CountingSession(Direct):
    """A session that counts its statements; it is the channel of the broker, too."""

    statements = 0

    async def execute(self, statement: str, params: Any = None) -> Rows:
        self.statements += 1
        with self.session.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(statement.encode(), params).fetchall()


class NamespaceScene:
    """So many namespaces on a lab's database, with a task each whose message is lost, and the services on them."""

    def __init__(self, lab: Lab, namespaces: int) -> None:
        fill(lab, namespaces)
        lose_messages(lab, namespaces)
        lab.one.execute("vacuum analyze")
        self.lab, self.count = lab, namespaces
        self.connection = CountingSession(lab.one)
        self.engine = Engine(self.connection, MessagingService(load_backend("pgmq", {"channel": self.connection})))
        self.plans, self.fleet = PlanStore(self.connection), FleetOverview(self.connection)

    def work(self, read: Callable[[NamespaceScene], Awaitable[Sequence[Any]]]) -> tuple[int, int, int]:
        """Statements, pages of tables and indexes, and rows of a read which has been done once before."""
        rows: list[Any] = []
        asyncio.run(_all(read, self))
        self.connection.statements = 0
        pages = work_of(self.lab.one, lambda: rows.extend(asyncio.run(_all(read, self)))).pages
        return self.connection.statements, pages, len(rows)


async def _all(read: Callable[[NamespaceScene], Awaitable[Sequence[Any]]], scene: NamespaceScene) -> Sequence[Any]:
    return await read(scene)


@dataclass(frozen=True)
class NamespaceRead:
    """A read that may visit so many more `pages` for each namespace.

    `each`: it has a row for every namespace, else it has `SHOWN` rows.
    """

    call: Callable[[NamespaceScene], Awaitable[Sequence[Any]]]
    pages: float
    each: bool = False


async def overview(scene: NamespaceScene) -> Sequence[Any]:
    """The two reads of the first page."""
    lately = await scene.fleet.activity(namespaces=SHOWN)
    names = [each.namespace for each in lately.namespaces]
    return (await scene.fleet.overview(namespaces=names, templates=SHOWN)).queues


async def fleet(scene: NamespaceScene) -> Sequence[Any]:
    """What the page of queues reads of namespaces."""
    found = await scene.fleet.overview(queues=SHOWN, templates=0)
    names = [each.namespace for each in found.queues]
    await scene.fleet.activity(tasks=0, namespaces=0)
    await scene.fleet.backlog(names)
    report = await broker_report(scene.engine.messaging, scene.connection, names)
    assert [each for each in report.queues if each.queue == f"worker_{space(0)}_queue"]
    return await scaling(scene.connection, namespaces=names)


async def top(scene: NamespaceScene) -> Sequence[Any]:
    return [each for each in (await scene.fleet.overview()).queues if each.enqueued]


async def metrics(scene: NamespaceScene) -> Sequence[Any]:
    """The four statements of a scrape."""
    found = await scene.fleet.overview(window_seconds=0)
    assert await scaling(scene.connection)
    assert await scene.connection.execute(query("fleet", "counted"))
    await scene.connection.execute(query("fleet", "dead_letters"))
    return [each for each in found.queues if each.enqueued]


async def doctor(scene: NamespaceScene) -> Sequence[Any]:
    """A finding for each namespace whose messages are lost."""
    found = await Doctor(scene.engine, 2000, 1000).findings()
    return [each for each in found if "without a message: 1" in each.what]


async def templates(scene: NamespaceScene) -> Sequence[Any]:
    return await scene.plans.registered(limit=SHOWN)


async def newest_templates(scene: NamespaceScene) -> Sequence[Any]:
    return await scene.plans.newest(limit=SHOWN)


READS = {
    "/ui": NamespaceRead(overview, 3),
    "/ui/fleet": NamespaceRead(fleet, 1),
    "/ui/templates": NamespaceRead(newest_templates, 0.1),
    "/v1/templates": NamespaceRead(templates, 0.1),
    "tasker top": NamespaceRead(top, 7, each=True),
    "/metrics": NamespaceRead(metrics, 7, each=True),
    "tasker doctor": NamespaceRead(doctor, 8, each=True),
}


def lines(conditions: Conditions, few: int = FEW, many: int = MANY) -> Iterator[str]:
    """The table, line by line."""
    yield f"{'namespaces':<18}{'':>8}{few:>14,}{many:>14,}"
    small, large = _measured(conditions, few), _measured(conditions, many)
    for name, read in READS.items():
        (statements, pages, rows), (statements_of_many, pages_of_many, rows_of_many) = small[name], large[name]
        bound = pages + read.pages * (many - few) + 20
        wrong = statements_of_many != statements or pages_of_many > bound
        wrong = wrong or (rows, rows_of_many) != ((few, many) if read.each else (SHOWN, SHOWN))
        yield f"{name:<18}{'sql':>8}{statements:>14,}{statements_of_many:>14,}"
        yield f"{'':<18}{'pages':>8}{pages:>14,}{pages_of_many:>14,}"
        yield f"{'':<18}{'rows':>8}{rows:>14,}{rows_of_many:>14,}{'  BEYOND' if wrong else ''}"


def _measured(conditions: Conditions, namespaces: int) -> dict[str, tuple[int, int, int]]:
    with conditions.database("tasker_growth") as url:
        lab = Lab(url)
        scene = NamespaceScene(lab, namespaces)
        work = {name: scene.work(read.call) for name, read in READS.items()}
        lab.close()
        return work
