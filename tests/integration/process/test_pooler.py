"""Behind a transaction pooler: LISTEN is found to be broken and said so, and everything runs all the same (rule 22)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace

import psycopg
import pytest

from tasker.db.connection import Connection
from tasker.db.listening import ListenSilent, listen
from tasker.messaging.listening_modes import DeploymentMode, HealthStatus
from tests.integration.process.programs import QUICK, events_of, eventually, runs, settings, submitting, working
from tests.integration.process.test_modes import DATABASE, hears
from tests.support.servers.pooler import transaction_pooler

SOON = replace(QUICK, listener=QUICK.listener.replace(connection_timeout_seconds=0.5))


@pytest.fixture
def pooler(database_url: str) -> Iterator[str]:
    with transaction_pooler(database_url) as url:
        yield url


async def test_notifications_that_a_pooler_swallows_are_replaced_by_polls_and_one_line_says_so(
    pooler: str, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = settings(DeploymentMode.HYBRID, SOON)
    async with working(pooler, chosen) as app, submitting(pooler) as program:
        listener = events_of(app).listeners[DATABASE]
        await eventually(lambda: listener.state.failures > 1, "the proof failed twice")
        await runs(program, 20)
        assert events_of(app).health().status is HealthStatus.DEGRADED
    warned = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    line, *later = [each for each in warned if DATABASE in each and "no notifications" in each]
    assert len(later) <= 1, "once more when it has tried as often as it is told to"
    assert all(f"after {SOON.listener.max_retry_attempts + 1} attempts" in each for each in later)
    assert "LISTEN does not work through 127.0.0.1:" in line
    assert "(a transaction pooler?): polling every 50 ms" in line
    assert "common.database.listen_url" in line


async def test_a_session_that_is_lent_to_others_is_no_ear_whatever_arrives(pooler: str) -> None:
    """The verdict needs no proof: one may arrive by chance, and nothing would be heard until the next."""
    others = [Connection(pooler) for _ in range(5)]
    sent: list[str] = []

    async def notify(channel: str) -> None:
        sent.append(channel)

    async def keep_busy(connection: Connection) -> None:
        while True:
            await connection.execute("select pg_sleep(0.001)")

    busy = [asyncio.create_task(keep_busy(connection)) for connection in others]
    try:
        for _ in range(20):
            async with asyncio.timeout(60):
                with pytest.raises(ListenSilent, match="LISTEN does not work through"):
                    await anext(listen(pooler, ["news"], notify, proof_seconds=3600, check_seconds=3600))
        assert sent == []
    finally:
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        for connection in others:
            await connection.close()


async def test_through_a_pooler_that_lends_a_session_for_good_listening_works(database_url: str) -> None:
    program = Connection(database_url)

    async def notify(channel: str) -> None:
        await program.execute("select pg_notify(%s, '')", (channel,))

    with transaction_pooler(database_url, "session") as url:
        news = listen(url, ["news"], notify, proof_seconds=10, check_seconds=3600)
        async with asyncio.timeout(60), aclosing(news):
            assert await anext(news) is None, "the proof"
            await program.execute("select pg_notify('news', 'hello')")
            assert await anext(news) == ("news", "hello")
    await program.close()


async def test_with_a_direct_url_to_listen_at_work_is_announced(pooler: str, database_url: str) -> None:
    chosen = settings(DeploymentMode.EVENT_DRIVEN_ONLY, replace(SOON, listen_url=database_url))
    async with working(pooler, chosen) as app, submitting(pooler) as program:
        await eventually(lambda: hears(app), "it hears")
        await runs(program, 20)
        assert events_of(app).statistics().found_by_polling == 0


async def test_statements_are_prepared_only_where_the_session_is_our_own(pooler: str, database_url: str) -> None:
    assert await prepared(pooler) == 0
    assert await prepared(database_url) > 0


async def prepared(url: str) -> int:
    """How many statements the session holds after one was executed often."""
    connection = Connection(url)
    try:
        for _ in range(10):
            await connection.execute("select %s::int", (7,))
        # the pooler lends the same session again
        ((count,),) = await connection.execute("select count(*) from pg_prepared_statements")
        return int(count)
    finally:
        await connection.close()


def test_the_pooler_is_one(pooler: str) -> None:
    """Or the tests above would prove nothing: a setting of the session does not stay with its connection."""
    with psycopg.connect(pooler, autocommit=True) as one, psycopg.connect(pooler, autocommit=True) as two:
        one.execute("set work_mem = '7MB'")
        with two.transaction():
            two.execute("select 1")
            found = one.execute("show work_mem").fetchone()
        assert found != ("7MB",)
