from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from tasker.db.channel import DatabaseChannel
from tasker.errors import BackendUnavailable, MessagingError
from tasker.messaging.port import Backend, MessageAvailable
from tasker.testing.messaging_contract import MessagingContract
from tasker_pgmq import PgmqBackend, create
from tasker_pgmq.unsettled import UnsettledMessages
from tests.contract.conftest import install, remove_queues
from tests.support.servers.private_postgres import PrivatePostgres, copied, private_server
from tests.support.sql_channel import PsycopgChannel


@pytest_asyncio.fixture
async def pgmq(empty_pgmq: str) -> AsyncIterator[PgmqBackend]:
    backend = create({"channel": PsycopgChannel(empty_pgmq)})
    await backend.open()
    yield backend
    await backend.close()


@pytest_asyncio.fixture
async def rival(empty_pgmq: str) -> AsyncIterator[PgmqBackend]:
    backend = create({"channel": PsycopgChannel(empty_pgmq)})
    yield backend
    await backend.close()


@pytest.fixture(scope="module")
def private_postgres(tmp_path_factory: pytest.TempPathFactory, cluster: Path) -> Iterator[PrivatePostgres]:
    with private_server(copied(cluster, tmp_path_factory.mktemp("postgres"))) as server:
        install(server.url)
        yield server


class TestPgmq(MessagingContract):
    """Over the engine's own channel, which outlives the server."""

    @pytest_asyncio.fixture
    async def backend(self, empty_pgmq: str, request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
        """On the tests' server; on one of our own where the test restarts it."""
        self.dsn, self.request = empty_pgmq, request
        if request.node.name.startswith("test_after_a_restart"):
            self.dsn = request.getfixturevalue("private_postgres").url
            remove_queues(self.dsn)
        backend = await self.another()
        yield backend
        await backend.close()

    async def another(self, backend: Backend | None = None) -> Backend:
        made = create({"channel": DatabaseChannel(self.dsn)})
        await made.open()
        return made

    async def advance(self, backend: Backend, seconds: float) -> None:
        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection:
            for queue in await backend.list_queues():
                statement = sql.SQL(
                    "update {} set vt = vt - make_interval(secs => %s), "
                    "enqueued_at = enqueued_at - make_interval(secs => %s)"
                ).format(sql.Identifier("pgmq", f"q_{queue.lower()}"))
                await connection.execute(statement, (seconds, seconds))

    async def restart(self, backend: Backend) -> None:
        server: PrivatePostgres = self.request.getfixturevalue("private_postgres")
        await asyncio.to_thread(server.restart)


async def test_a_message_that_came_back_and_went_to_a_rival_is_no_longer_ours(
    pgmq: PgmqBackend, rival: PgmqBackend
) -> None:
    await pgmq.create_queue("q")
    message_id = await pgmq.send_message("q", b"{}")
    await pgmq.receive_messages("q", 1, 0.0)
    (theirs,) = await rival.receive_messages("q", 1, 60.0)
    assert theirs.read_count == 2
    assert await pgmq.extend_visibility("q", message_id, 60.0) is False
    assert await pgmq.ack_message("q", message_id) is False
    assert await rival.ack_message("q", message_id) is True


async def test_a_name_that_differs_only_in_case_is_refused(pgmq: PgmqBackend) -> None:
    await pgmq.create_queue("worker_Payments_queue")
    with pytest.raises(MessagingError, match="differs only in upper and lower case"):
        await pgmq.create_queue("worker_payments_queue")
    assert not await pgmq.queue_exists("worker_payments_queue")
    with pytest.raises(MessagingError, match="does not exist"):
        await pgmq.send_message("worker_payments_queue", b"{}")


async def test_a_message_is_announced_with_its_id(pgmq: PgmqBackend) -> None:
    await pgmq.create_queue("worker_pay-ments_queue")
    async with aclosing(pgmq.subscribe_many(["worker_pay-ments_queue"])) as notifications:
        await anext(notifications)
        message_id = await pgmq.send_message("worker_pay-ments_queue", b'{"n": 1}')
        assert await asyncio.wait_for(anext(notifications), 60) == MessageAvailable(
            "worker_pay-ments_queue", message_id
        )


async def test_foreign_notifications_on_the_channel_are_passed_over(pgmq: PgmqBackend, empty_pgmq: str) -> None:
    await pgmq.create_queue("q")
    async with aclosing(pgmq.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        async with await psycopg.AsyncConnection.connect(empty_pgmq, autocommit=True) as connection:
            for payload in ("", "no json", "[]", "{}", '{"queue_name": "other"}'):
                await connection.execute("select pg_notify('pgmq_message_ready.default', %s)", (payload,))
        message_id = await pgmq.send_message("q", b"{}")
        assert await asyncio.wait_for(anext(notifications), 60) == MessageAvailable("q", message_id)


async def test_notifications_name_queue_namespace_and_delay_on_both_channels(
    pgmq: PgmqBackend, empty_pgmq: str
) -> None:
    await pgmq.create_queue("worker_payments_queue")
    channels = ["pgmq_message_ready.payments", "pgmq_message_ready"]
    async with PsycopgChannel(empty_pgmq).listen(channels) as listener:
        message_id = await pgmq.send_message_with_delay("worker_payments_queue", b"{}", 1.5)
        heard = [await asyncio.wait_for(anext(listener), 60) for _ in channels]
    assert [channel for channel, _ in heard] == channels
    for _, payload in heard:
        assert f'"event_type" : "message_ready", "msg_id" : {message_id}' in payload
        assert '"queue_name" : "worker_payments_queue", "namespace" : "payments"' in payload
        assert '"delay_seconds" : 1.5' in payload


async def test_plain_pgmq_reads_what_was_sent_as_a_json_object(pgmq: PgmqBackend, empty_pgmq: str) -> None:
    await pgmq.create_queue("q")
    await pgmq.send_message("q", b'{"n": 1}')
    async with await psycopg.AsyncConnection.connect(empty_pgmq, autocommit=True) as connection:
        row = await (await connection.execute("select message from pgmq.read('q', 30, 1)")).fetchone()
    assert row == ({"n": 1},)


async def test_a_queue_table_is_tuned_for_hot_use(pgmq: PgmqBackend, empty_pgmq: str) -> None:
    await pgmq.create_queue("q")
    async with await psycopg.AsyncConnection.connect(empty_pgmq, autocommit=True) as connection:
        query = "select reloptions from pg_class where oid = 'pgmq.q_q'::regclass"
        row = await (await connection.execute(query)).fetchone()
    assert row is not None
    assert {"fillfactor=70", "autovacuum_vacuum_cost_delay=0"} <= set(row[0])


async def test_without_a_connection_the_error_says_what_is_missing() -> None:
    with pytest.raises(BackendUnavailable, match="has no connection"):
        await create({}).health_check()


async def test_opening_a_database_without_the_functions_names_the_command(empty_database_url: str) -> None:
    backend = create({"channel": PsycopgChannel(empty_database_url)})
    try:
        with pytest.raises(BackendUnavailable) as caught:
            await backend.open()
    finally:
        await backend.close()
    assert caught.value.hint == "run: tasker db upgrade"


async def test_installing_again_keeps_queues_and_messages(pgmq: PgmqBackend, empty_pgmq: str) -> None:
    await pgmq.create_queue("q")
    await pgmq.send_message("q", b'{"n": 1}')
    async with await psycopg.AsyncConnection.connect(empty_pgmq, autocommit=True) as connection:
        for _, script in pgmq.install_sql():
            await connection.execute(script.encode())
    (message,) = await pgmq.receive_messages("q", 1, 30)
    assert message.payload == b'{"n": 1}'


def test_held_messages_are_bounded_and_the_oldest_gives_way() -> None:
    held = UnsettledMessages(limit=2)
    for message_id in (1, 2, 3):
        held.remember("q", message_id, 1)
    assert [held.read_count("q", message_id) for message_id in (1, 2, 3)] == [None, 1, 1]
