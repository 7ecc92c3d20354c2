"""A fleet of many namespaces is read in as many statements as one of few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasker.db.session import Rows
from tasker.messaging.service import MessagingService
from tasker.services.fleet.brokers import broker_report
from tasker.views.fleet import BrokerReport
from tasker_pgmq import create
from tests.support.engine_fixture import Direct, Lab
from tests.support.sql_channel import PsycopgChannel


class CountingChannel(PsycopgChannel):
    statements = 0

    async def execute(self, statement: str, params: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        self.statements += 1
        return await super().execute(statement, params)


class CountingConnection(Direct):
    statements = 0

    async def execute(self, statement: str, params: Any = None) -> Rows:
        self.statements += 1
        return await super().execute(statement, params)


async def report(lab: Lab) -> tuple[BrokerReport, int]:
    """The report of queues, and how many statements it took."""
    channel, connection = CountingChannel(lab.url), CountingConnection(lab.one)
    messaging = MessagingService(create({"channel": channel}))
    await messaging.open()
    channel.statements = 0
    found = await broker_report(messaging, connection)
    await messaging.close()
    return found, channel.statements + connection.statements


async def test_queues_of_many_namespaces_are_counted_in_one_statement(lone_lab: Lab) -> None:
    lab = lone_lab
    lab.submit(lab.chain(1), {}, {})
    _, few = await report(lab)
    for number in range(20):
        lab.one.execute("select tasker.namespace_id(%s)", f"empty_{number}")
        lab.one.execute("select pgmq.create(%s)", f"worker_empty_{number}_queue")

    found, many = await report(lab)

    assert many == few
    depths = {queue.queue: queue.depth for queue in found.queues if queue.exists}
    assert depths[f"worker_{lab.namespace}_queue"] == 2
    assert [depths[f"worker_empty_{number}_queue"] for number in range(20)] == [0] * 20
