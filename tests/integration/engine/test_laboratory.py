"""What one test leaves is not there for the next one."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.engine_fixture import Lab
from tests.support.laboratory import Laboratory
from tests.support.servers.databases import Server


@pytest.fixture(scope="module")
def own_laboratory(server: Server, migrated_template: str) -> Iterator[Laboratory]:
    laboratory = Laboratory(lambda: server.database(migrated_template))
    yield laboratory
    laboratory.close()


def opened(laboratory: Laboratory) -> Lab:
    sessions = laboratory.sessions
    return Lab(sessions.url, kept=sessions)


def left_behind(laboratory: Laboratory, *statements: str) -> Lab:
    """The lab of the test after one that has run these."""
    lab = opened(laboratory)
    try:
        lab.submit_one(lab.chain(2))
        for statement in statements:
            lab.one.execute(statement)
    finally:
        lab.close()
        laboratory.clean()
    return opened(laboratory)


def test_rows_messages_and_what_a_session_has_set_are_gone_and_the_sessions_are_kept(
    own_laboratory: Laboratory,
) -> None:
    before = opened(own_laboratory)
    before.one.connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    before.session(options="-c default_transaction_isolation=serializable")
    pids, url = (before.observer.pid, before.one.pid), before.url
    before.close()

    lab = left_behind(own_laboratory, "set statement_timeout = 1234", "listen x", "begin", "select pg_advisory_lock(1)")

    try:
        assert (lab.url, (lab.observer.pid, lab.one.pid)) == (url, pids)
        assert (lab.observer.rows("select from tasker.tasks"), lab.queue_depth()) == ([], 0)
        assert lab.one.value("show statement_timeout") == "0"
        assert lab.one.connection.isolation_level is None
        assert {session.value("show transaction_isolation") for session in (lab.one, lab.two, lab.session())} == {
            "read committed"
        }
        assert lab.one.rows("select pg_listening_channels()") == []
        locks = "select from pg_locks l join pg_database d on d.oid = l.database where l.locktype = 'advisory'"
        assert lab.observer.rows(f"{locks} and d.datname = current_database()") == [], (
            "of other tests there may be some"
        )
    finally:
        lab.close()


@pytest.mark.parametrize(
    "statement",
    [
        "create table public.more ()",
        "create or replace function tasker.now() returns timestamptz language sql as 'select pg_catalog.now()'",
        "alter table tasker.tasks alter priority set default 7",
        "alter table tasker.tasks set (fillfactor = 51)",
        "update tasker.staleness_settings set checkpoint_stall_minutes = 7",
        "insert into pgmq.q_worker_lab_queue (vt, message) select now(), to_jsonb(n) from generate_series(1, 20000) n",
    ],
)
def test_a_database_that_has_another_shape_than_before_is_given_up(own_laboratory: Laboratory, statement: str) -> None:
    url = own_laboratory.sessions.url

    lab = left_behind(own_laboratory, statement)

    try:
        assert lab.url != url
    finally:
        lab.close()
