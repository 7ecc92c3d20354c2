"""Backends that cannot send in the caller's transaction send after its commit, and only then."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

import tasker
from tasker.db.caller_transaction import caller_transaction
from tasker.db.sql_files import query
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template.plan import Plan
from tests.integration.app.program import (
    count,
    in_connection,
    in_psycopg,
    in_scoped_session,
    in_session,
    of_sqlalchemy,
    value,
)


@pytest.mark.parametrize("opened", [in_connection, in_session, in_scoped_session])
def test_hints_are_sent_after_the_commit(
    memory_app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan, opened: Any
) -> None:
    with opened(engine) as (transaction, insert):
        insert()
        submitted = memory_app.submit_in(transaction, plan, {"name": "Ada"})
        transaction.commit()

    assert memory_app.wait(submitted.task_uuid, timeout=30.0).succeeded, "sent: sweeps look for no hint here"


def test_hints_are_never_sent_after_a_rollback(
    memory_app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    sent = SentHints(memory_app)
    with engine.connect() as connection:
        memory_app.submit_in(connection, plan, {"name": "rolled back"})
        connection.rollback()
        with connection.begin_nested() as savepoint:
            memory_app.submit_in(connection, plan, {"name": "in a savepoint"})
            savepoint.rollback()
        kept = memory_app.submit_in(connection, plan, {"name": "kept"})
        connection.commit()

    memory_app.wait(kept.task_uuid)
    assert sent.tasks == [kept.task_uuid]
    assert count(memory_app.database_url, "tasker.poison_messages") == 0


def test_a_commit_that_fails_sends_nothing(memory_app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan) -> None:
    sent = SentHints(memory_app)
    with engine.begin() as connection:
        connection.exec_driver_sql("create table checked (id int unique deferrable initially deferred)")
    with engine.connect() as connection:
        memory_app.submit_in(connection, plan, {"name": "never"})
        connection.exec_driver_sql("insert into checked values (1), (1)")
        with pytest.raises(sqlalchemy.exc.IntegrityError):
            connection.commit()
    with engine.begin() as connection:
        kept = memory_app.submit_in(connection, plan, {"name": "kept"})

    memory_app.wait(kept.task_uuid)
    assert sent.tasks == [kept.task_uuid]


def test_a_commit_during_a_look_does_not_pass_for_a_rollback(
    memory_app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with engine.connect() as connection, psycopg.connect(memory_app.database_url) as looking:
        task = memory_app.submit_in(connection, plan, {"name": "Ada"}).task_uuid
        transaction = connection.exec_driver_sql("select pg_current_xact_id()::text").scalar()
        looking.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        looking.execute("select")  # from here on it sees what was there before the commit
        connection.commit()

        assert look(looking, transaction, task) == (True, [])
        looking.rollback()
        assert look(looking, transaction, task) == (False, [task])


def look(connection: psycopg.Connection[Any], transaction: Any, task: str) -> Any:
    """Whether the transaction is open, and which tasks it made."""
    return connection.execute(query("submission", "outcome"), {"transaction": transaction, "tasks": [task]}).fetchone()


@pytest.mark.parametrize("opened", [in_connection, in_session, in_scoped_session])
def test_an_app_that_has_stopped_leaves_the_commit_to_the_caller(
    memory_app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan, opened: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tasker.submission"), opened(engine) as (transaction, insert):
        insert()
        task = memory_app.submit_in(transaction, plan, {"name": "Ada"}).task_uuid
        url = memory_app.database_url
        memory_app.stop()
        transaction.commit()

    assert (count(url, "orders"), value(url, "select task_uuid::text from tasker.tasks")) == (1, task)
    assert "wakeups_not_sent count=1 reason=the app has stopped" in caplog.text


async def test_an_app_that_has_stopped_opens_no_connection_behind_a_commit(
    new_database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    engine = sqlalchemy.create_engine(of_sqlalchemy(new_database_url), poolclass=NullPool)
    app = tasker.App(new_database_url, registry=registry, backend="memory")
    await app.start()
    with engine.connect() as connection:
        await app.submit_in(connection, plan, {"name": "Ada"})
        await app.stop()
        connection.commit()
    await until_alone()
    of_app = "pg_stat_activity where application_name = 'tasker app' and datname = current_database()"
    assert count(new_database_url, of_app) == 0


async def until_alone() -> None:
    """Return when nothing else is left to do in this event loop."""
    await asyncio.sleep(0)  # what was called begins
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.gather(*others)  # type: ignore[arg-type]


def test_what_fails_behind_a_commit_is_not_the_commits_failure(
    memory_app: tasker.SyncApp, engine: sqlalchemy.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("of ours")

    with Session(engine) as session:
        caller_transaction(session).after_commit(fail)
        session.execute(sqlalchemy.text("insert into orders values (1)"))
        session.commit()

    assert count(memory_app.database_url, "orders") == 1
    assert "of ours" in caplog.text


def test_a_psycopg_connection_is_refused_there(
    memory_app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with in_psycopg(engine) as (connection, _), pytest.raises(UsageError, match="does not report its commits"):
        memory_app.submit_in(connection, plan, {"name": "x"})


class SentHints:
    """The tasks whose hints an app sends from now on."""

    def __init__(self, app: tasker.SyncApp) -> None:
        self.tasks: list[str] = []
        messaging = app.original.messaging
        original = messaging.send_hints

        async def send_hints(entries: Any) -> dict[str, int]:
            entries = list(entries)
            self.tasks += [entry["task"] for entry in entries]
            return await original(entries)

        messaging.send_hints = send_hints  # type: ignore[method-assign]
