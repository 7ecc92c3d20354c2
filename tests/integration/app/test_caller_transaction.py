"""Submitting in a transaction of the program's own: its rows and the task are committed together, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row, scalar_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

import tasker
from tasker.db.caller_transaction import caller_transaction, guarded
from tasker.db.connection import DataRefused
from tasker.errors import DatabaseError, DatabaseUnavailable, DuplicateTask, InputInvalid, SchemaOutdated, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template.plan import Plan
from tests.integration.app.program import (
    TEMPLATE,
    count,
    in_connection,
    in_psycopg,
    in_scoped_session,
    in_session,
    of_sqlalchemy,
    traces,
    value,
)

OPENERS = [in_connection, in_session, in_scoped_session, in_psycopg]


@pytest.mark.parametrize("opened", OPENERS)
def test_the_task_exists_once_the_caller_commits(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan, opened: Any
) -> None:
    with opened(engine) as (transaction, insert):
        insert()
        submitted = app.submit_in(transaction, plan, {"name": "Ada"})
        assert traces(app.database_url) == {}, "invisible before the commit"
        transaction.commit()

    assert app.wait(submitted.task_uuid).results == {"greet": {"text": "Hello, Ada!"}}
    assert count(app.database_url, "orders") == 1


@pytest.mark.parametrize("opened", OPENERS)
def test_a_rollback_leaves_nothing(app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan, opened: Any) -> None:
    with opened(engine) as (transaction, insert):
        insert()
        app.submit_in(transaction, plan, {"name": "Ada"})
        transaction.rollback()

    assert traces(app.database_url) == {}
    assert count(app.database_url, "orders") == 0


def test_the_commit_announces_the_task_whoever_slept_when_it_was_made(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    """A worker may fall asleep while the transaction stays open, and would see nothing by its last look."""
    with psycopg.connect(app.database_url, autocommit=True) as ears, in_session(engine) as (transaction, _):
        ears.execute("update tasker.workers set asleep = false")
        ears.execute("listen tasker_work")
        app.submit_in(transaction, plan, {"name": "Ada"})
        transaction.commit()
        ears.execute("select 1")
        assert f"@{plan.namespace}" in [each.payload for each in ears.notifies(timeout=0)]


async def test_async_connections_and_sessions_take_part_too(
    database_url: str, engine: sqlalchemy.Engine, registry: HandlerRegistry, plan: Plan
) -> None:
    asynchronous = create_async_engine(of_sqlalchemy(database_url), poolclass=NullPool)
    async with tasker.App(database_url, registry=registry) as app:
        async with asynchronous.begin() as connection:
            first = await app.submit_in(connection, plan, {"name": "one"})
        async with AsyncSession(asynchronous) as session, session.begin():
            second = await app.submit_in(session, plan, {"name": "two"})
        with Session(engine) as session:
            third = await app.submit_in(session, plan, {"name": "three"})
            session.commit()
        async with AsyncSession(asynchronous) as session:
            dropped = await app.submit_in(session, plan, {"name": "dropped"})

        texts = [(await app.wait(s.task_uuid)).results["greet"]["text"] for s in (first, second, third)]
        known = {task.task_uuid for task in await app.tasks.list()}
    await asynchronous.dispose()

    assert texts == ["Hello, one!", "Hello, two!", "Hello, three!"]
    assert dropped.task_uuid not in known


@pytest.mark.parametrize(
    "factories",
    [
        {"row_factory": dict_row},
        {"row_factory": scalar_row},
        {"cursor_factory": psycopg.RawCursor},
        {"cursor_factory": psycopg.ClientCursor},
    ],
    ids=["dict_row", "scalar_row", "RawCursor", "ClientCursor"],
)
def test_a_psycopg_connection_may_have_factories_of_its_own(
    app: tasker.SyncApp, plan: Plan, factories: dict[str, Any]
) -> None:
    app.plan(plan)
    with psycopg.connect(app.database_url, **factories) as connection:
        tasks = [
            app.submit_in(connection, plan, {"name": "Ada"}),
            tasker.submit_in(connection, "caller/greeting", {"name": "Bob"}),
        ]

    assert all(app.wait(task.task_uuid).succeeded for task in tasks)


def test_only_a_connection_that_has_ended_is_called_lost(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with psycopg.connect(app.database_url) as connection:
        cut(app, connection.info.backend_pid)
        refused(app, connection, plan, DatabaseUnavailable, "was lost")
    with engine.connect() as alchemy:
        cut(app, alchemy.exec_driver_sql("select pg_backend_pid()").scalar())
        refused(app, alchemy, plan, DatabaseUnavailable, "was lost")
        alchemy.rollback()


def cut(app: tasker.SyncApp, pid: Any) -> None:
    with psycopg.connect(app.database_url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", [pid])


@pytest.mark.parametrize("opened", [in_connection, in_psycopg])
@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("select cast({} as int)", ["x"]),
        ("insert into orders values (1), (1) returning id", []),
        ("select array_fill(0, array[2000000000])", []),
        ("select cast({} as text)", ["a\0b"]),
    ],
    ids=["22", "23", "54", "by the driver"],
)
def test_what_is_refused_for_its_values_is_not_called_retryable(
    engine: sqlalchemy.Engine, opened: Any, statement: str, values: list[str]
) -> None:
    with opened(engine) as (target, insert):
        transaction = caller_transaction(target)
        with pytest.raises(DataRefused) as caught, guarded(transaction, 5.0):
            transaction.value(statement, *values)
        assert not caught.value.retryable
        insert()


def test_a_duplicate_is_answered_and_the_transaction_goes_on(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with Session(engine) as session:
        app.submit_in(session, plan, {"name": "Ada"})
        with pytest.raises(DuplicateTask):
            app.submit_in(session, plan, {"name": "Ada"})
        session.execute(sqlalchemy.text("insert into orders values (1)"))
        session.commit()

    assert (count(app.database_url, "tasker.tasks"), count(app.database_url, "orders")) == (1, 1)


def test_an_identity_that_another_transaction_holds_is_waited_for_no_longer_than_asked(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with engine.connect() as one, engine.connect() as two:
        app.submit_in(one, plan, {"name": "Ada"})
        before = two.exec_driver_sql("show lock_timeout").scalar()
        with pytest.raises(DatabaseError, match=r"longer than 0\.05 seconds"):
            app.submit_in(two, plan, {"name": "Ada"}, lock_timeout=0.05)
        one.commit()
        assert two.exec_driver_sql("show lock_timeout").scalar() == before
        other = app.submit_in(two, plan, {"name": "Bob"}, lock_timeout=0.05)
        assert two.exec_driver_sql("show lock_timeout").scalar() == before
        two.commit()

    assert app.wait(other.task_uuid).succeeded


def test_a_savepoint_of_the_caller_that_is_rolled_back_takes_its_task_along(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with engine.begin() as connection:
        kept = app.submit_in(connection, plan, {"name": "kept"})
        with connection.begin_nested() as savepoint:
            dropped = app.submit_in(connection, plan, {"name": "dropped"})
            savepoint.rollback()

    assert app.wait(kept.task_uuid).succeeded
    assert dropped.task_uuid not in {task.task_uuid for task in app.tasks.list()}


def test_an_invalid_input_is_refused_and_the_transaction_goes_on(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with engine.begin() as connection:
        with pytest.raises(InputInvalid, match="name"):
            app.submit_in(connection, plan, {})
        connection.exec_driver_sql("insert into orders values (1)")

    assert count(app.database_url, "orders") == 1


def refused(app: tasker.SyncApp, transaction: object, plan: Plan, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        app.submit_in(transaction, plan, {"name": "x"})


def test_what_is_no_transaction_is_refused(app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan) -> None:
    refused(app, app.database_url, plan, UsageError, "cannot submit in a str")
    with psycopg.connect(app.database_url, autocommit=True) as connection:
        refused(app, connection, plan, UsageError, "autocommit")
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as free:
        refused(app, free, plan, UsageError, "autocommit")
    for isolation in ("SERIALIZABLE", "REPEATABLE READ"):
        with engine.execution_options(isolation_level=isolation).connect() as strict:
            refused(app, strict, plan, UsageError, f"needs READ COMMITTED, this transaction is {isolation}")
    with sqlalchemy.create_engine("sqlite://").connect() as other:
        refused(app, other, plan, UsageError, "sqlite")

    assert traces(app.database_url) == {}


def test_a_transaction_on_another_database_is_refused(
    app: tasker.SyncApp, server: Any, migrated_template: str, plan: Plan
) -> None:
    """Its template identifiers are its own: taking ours would create a task of some other template."""
    with server.database(migrated_template) as elsewhere, psycopg.connect(elsewhere) as connection:
        refused(app, connection, plan, UsageError, "no template caller/greeting")
    with server.database() as empty, psycopg.connect(empty) as connection:
        refused(app, connection, plan, SchemaOutdated, "schema tasker")


# Without an app


def test_a_program_that_runs_no_worker_submits_and_another_one_runs_the_task(
    engine: sqlalchemy.Engine, database_url: str, registry: HandlerRegistry, plan: Plan, tmp_path: Path
) -> None:
    """The template comes from a plan, from a file, and at last from its registered name."""
    (tmp_path / "workflow.yaml").write_text(TEMPLATE)
    with Session(engine) as session:
        tasks = [
            tasker.submit_in(session, target, {"name": str(number)})
            for number, target in enumerate((plan, tmp_path, "caller/greeting", "caller/greeting:1.0.0"))
        ]
        session.commit()

    with tasker.SyncApp(database_url, registry=registry) as app:
        app.plan("caller/greeting")
        texts = [app.wait(task.task_uuid).results["greet"]["text"] for task in tasks]

    assert texts == ["Hello, 0!", "Hello, 1!", "Hello, 2!", "Hello, 3!"]


async def test_it_has_an_asynchronous_form(engine: sqlalchemy.Engine, database_url: str, plan: Plan) -> None:
    asynchronous = create_async_engine(of_sqlalchemy(database_url), poolclass=NullPool)
    async with asynchronous.begin() as connection:
        submitted = await tasker.submit_in_async(connection, plan, {"name": "x"}, priority=3)
    await asynchronous.dispose()

    found = value(database_url, "select task_uuid || ' ' || priority from tasker.tasks")
    assert found == f"{submitted.task_uuid} 3"


def test_a_rollback_takes_the_template_along(engine: sqlalchemy.Engine, database_url: str, plan: Plan) -> None:
    with engine.connect() as connection:
        tasker.submit_in(connection, plan, {"name": "x"})
        connection.rollback()

    assert traces(database_url) == {}
    assert count(database_url, "tasker.templates") == 0


def test_an_unregistered_name_is_refused(engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection, pytest.raises(UsageError, match="no template caller/nothing"):
        tasker.submit_in(connection, "caller/nothing")


def test_a_backend_that_sends_after_the_commit_needs_an_app(engine: sqlalchemy.Engine, plan: Plan) -> None:
    with engine.connect() as connection, pytest.raises(UsageError, match="memory backend cannot send"):
        tasker.submit_in(connection, plan, {"name": "x"}, backend="memory")
