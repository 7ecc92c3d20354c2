"""Handlers whose commit completes their step: both happen, or neither, whatever goes wrong between two statements."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import psycopg_pool
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

import tasker
from tasker.db import handler_transaction
from tasker.execution.attempt import transactions
from tasker.execution.attempt.transactions import AttemptTransaction
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.orchestration.step_transactions import EngineTransactions
from tasker.step_handler import StepHandler, checkpoint_yield, step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.app.program import of_sqlalchemy, value
from tests.support.worker_settings import worker_settings

TEMPLATE = """
name: ledger
namespace: effects
version: 1.0.0
steps:
  - {name: post, handler: post, effect: transactional, retry: {max_attempts: 2, backoff_base_ms: 1}}
  - {name: after, handler: after, dependencies: [post]}
"""
INSERT = "insert into entry default values"


@pytest.fixture
def url(database_url: str) -> Iterator[str]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("create table public.entry (id serial primary key, amount int check (amount > 0) default 1)")
    yield database_url
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("drop table public.entry")


def plan(**changes: str) -> Plan:
    text = TEMPLATE
    for old, new in changes.items():
        text = text.replace(old, new)
    (compiled,) = compile_text(text).plans
    return compiled


@step_handler("after")
def after() -> dict[str, Any]:
    return {}


def run(url: str, handler: Any, resource: Any = None, compiled: Plan | None = None, **options: Any) -> Any:
    """Run one task with this handler of its transactional step, to its end."""
    registry = HandlerRegistry()
    registry.register("post", handler)
    registry.register("after", after)
    resources = {} if resource is None else {"ledger": resource}
    with tasker.SyncApp(url, registry=registry, resources=resources, **options) as app:
        task = app.submit(compiled or plan(), {}, idempotency_key=str(uuid4())).task_uuid
        return app.wait(task, timeout=60)


def entries(url: str) -> int:
    return int(value(url, "select count(*) from public.entry"))


def failures(report: Any) -> list[str]:
    return [failure["error_type"] for failure in report.steps["post"].failures or ()]


def violations(url: str) -> int:
    return int(value(url, "select count(*) from tasker.violations_v1('{}')"))


@step_handler("post", effect="transactional", transaction="ledger")
def post(transaction: Any) -> dict[str, Any]:
    if isinstance(transaction, Session):
        transaction.execute(sqlalchemy.text(INSERT))
    elif isinstance(transaction, sqlalchemy.Connection):
        transaction.exec_driver_sql(INSERT)
    else:
        transaction.execute(INSERT)
    return {"of": [base.__name__ for base in type(transaction).__mro__]}


@step_handler("post", effect="transactional", transaction="ledger")
async def post_async(transaction: Any) -> dict[str, Any]:
    await transaction.execute(sqlalchemy.text(INSERT) if isinstance(transaction, AsyncSession) else INSERT)
    return {"of": [base.__name__ for base in type(transaction).__mro__]}


@step_handler("post", effect="transactional")
def post_here(transaction: psycopg.Connection[Any]) -> dict[str, Any]:
    transaction.execute(INSERT)
    return {"of": [base.__name__ for base in type(transaction).__mro__]}


@step_handler("post", effect="transactional")
async def post_here_async(transaction: psycopg.AsyncConnection[Any]) -> dict[str, Any]:
    await transaction.execute(INSERT)
    return {"of": [base.__name__ for base in type(transaction).__mro__]}


def engine_of(url: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(of_sqlalchemy(url), poolclass=NullPool)


SOURCES: list[tuple[str, Any, Callable[[str], Any]]] = [
    ("Connection", post_here, lambda url: None),
    ("AsyncConnection", post_here_async, lambda url: None),
    ("Connection", post, lambda url: lambda: psycopg.connect(url, autocommit=True)),
    ("Connection", post, lambda url: psycopg_pool.ConnectionPool(url, min_size=1, max_size=1, open=True)),
    ("Connection", post, engine_of),
    ("Session", post, lambda url: sessionmaker(engine_of(url))),
    (
        "AsyncSession",
        post_async,
        lambda url: async_sessionmaker(create_async_engine(of_sqlalchemy(url), poolclass=NullPool)),
    ),
    ("AsyncConnection", post_async, lambda url: lambda: psycopg.AsyncConnection.connect(url)),
]


@pytest.mark.parametrize(("kind", "handler", "source"), SOURCES)
def test_rows_and_completion_are_one_commit(url: str, kind: str, handler: Any, source: Callable[[str], Any]) -> None:
    resource = source(url)
    report = run(url, handler, resource)
    assert (report.status, entries(url), violations(url)) == ("complete", 1, 0)
    assert kind in report.results["post"]["of"]
    mine = "(select workflow_step_uuid from tasker.workflow_steps where name = 'post')"
    written = f"select xmin from tasker.workflow_steps where workflow_step_uuid = {mine}"
    assert value(url, f"select (select xmin from public.entry) = ({written})"), "one transaction wrote both"


def test_connections_of_a_pool_come_back_as_they_were(url: str) -> None:
    with psycopg_pool.ConnectionPool(url, kwargs={"autocommit": True}, min_size=1, max_size=1, open=True) as pool:
        assert run(url, post, pool).status == "complete"
        with pool.connection() as connection:
            assert connection.autocommit


class OfClass(StepHandler):
    handler_name = "post"

    def call(self, context: Any) -> Any:
        context.transaction.execute(INSERT)
        return self.success({})


def test_class_reads_the_transaction_of_its_step_from_the_context(url: str) -> None:
    report = run(url, OfClass)
    assert (report.status, entries(url)) == ("complete", 1)


def fails_once(how: Callable[[Any], Any]) -> tuple[Any, list[int]]:
    """A handler that inserts a row and does this at its first call, with the number of its calls."""
    calls: list[int] = []

    @step_handler("post", effect="transactional")
    def handler(transaction: Any) -> Any:
        transaction.execute(INSERT)
        calls.append(1)
        return how(transaction) if len(calls) == 1 else {}

    return handler, calls


def raises(transaction: Any) -> Any:
    raise RuntimeError("afterwards")


@pytest.mark.parametrize("how", [raises, lambda transaction: {"unstorable": object()}])
def test_failed_attempt_leaves_no_rows(url: str, how: Callable[[Any], Any]) -> None:
    handler, calls = fails_once(how)
    report = run(url, handler)
    assert entries(url) == len(calls) - 1 == (report.status == "complete")


def test_success_of_a_stopped_attempt_is_a_failure(url: str) -> None:
    """Its time is up just as it returns: what is not committed must not be completed by an ordinary write."""
    calls: list[int] = []

    @step_handler("post", effect="transactional")
    def handler(context: Any, transaction: Any) -> dict[str, Any]:
        transaction.execute(INSERT)
        calls.append(1)
        if len(calls) == 1:
            context._cancel_flag.time_is_up()
        return {}

    report = run(url, handler)
    assert (report.status, entries(url), failures(report)) == ("complete", 1, ["transaction_lost"])


def test_position_is_saved_and_the_rows_before_it_are_not(url: str) -> None:
    handler, _ = fails_once(lambda transaction: checkpoint_yield(1, 1))
    assert (run(url, handler).status, entries(url)) == ("complete", 1)


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_handler_that_ends_its_transaction_fails_for_good(url: str, how: str) -> None:
    handler, _ = fails_once(lambda transaction: getattr(transaction, how)())
    report = run(url, handler)
    assert (report.status, failures(report)) == ("error", ["transaction_ended"])


def test_constraint_checked_at_the_commit_leaves_neither(url: str) -> None:
    @step_handler("post", effect="transactional")
    def late(transaction: Any) -> dict[str, Any]:
        transaction.execute("alter table entry add column ref int references entry deferrable initially deferred")
        transaction.execute("insert into entry (ref) values (-1)")
        return {}

    report = run(url, late, compiled=plan(**{"max_attempts: 2": "max_attempts: 1"}))
    assert (report.status, entries(url)) == ("error", 0)
    assert "foreign key" in report.steps["post"].failures[0]["message"]


UNUSABLE: list[tuple[Any, Callable[[str], Any], str]] = [
    (
        post,
        lambda url: sqlalchemy.create_engine(of_sqlalchemy(url), isolation_level="SERIALIZABLE", poolclass=NullPool),
        "expected a READ COMMITTED transaction, got SERIALIZABLE",
    ),
    (
        post,
        lambda url: sqlalchemy.create_engine(of_sqlalchemy(url), isolation_level="AUTOCOMMIT", poolclass=NullPool),
        "got a connection in autocommit mode",
    ),
    (
        post,
        lambda url: lambda: psycopg.connect(url.rpartition("/")[0] + "/postgres"),
        "the transaction is not in the database of Tasker",
    ),
    (post, lambda url: object(), "gives a object, expected an engine"),
    (post_async, engine_of, "gives a Connection, expected a psycopg AsyncConnection"),
]


@pytest.mark.parametrize(("handler", "source", "says"), UNUSABLE)
def test_unusable_source_fails_the_step_before_its_handler(
    url: str, handler: Any, source: Callable[[str], Any], says: str
) -> None:
    report = run(url, handler, source(url))
    assert (report.status, failures(report), entries(url)) == ("error", ["configuration_error"], 0)
    assert says in report.steps["post"].failures[0]["message"]


def test_locked_task_is_waited_for_and_then_tried_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler_transaction, "LOCK_SECONDS", 0.05)
    with psycopg.connect(url) as other:
        calls: list[int] = []

        @step_handler("post", effect="transactional")
        def handler(transaction: Any, context: Any) -> dict[str, Any]:
            transaction.execute(INSERT)
            calls.append(1)
            if len(calls) == 1:
                other.execute("select from tasker.tasks where task_uuid = %s for update", (context.task_uuid,))
            else:
                other.rollback()
            return {}

        threading.Timer(1.0, other.rollback).start()
        report = run(url, handler)
    assert (report.status, entries(url), failures(report)) == ("complete", 1, ["lock_timeout"])


def test_commit_of_a_thread_that_was_left_behind_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a lock when its time is up: what it commits then completes the step, and the next one starts."""
    told, held = list[str](), threading.Event()
    committed, settled = EngineTransactions.committed, AttemptTransaction.settled

    async def watched(self: Any, write: Any, answer: Any) -> Any:
        told.append(write.result.claim.name)
        return await committed(self, write, answer)

    async def over(self: Any, end: Any) -> Any:
        ended = await settled(self, end)
        held.set()
        while not self.is_written:  # else the failure may be stored first
            await asyncio.sleep(0.01)
        return ended

    def complete(*arguments: Any) -> Any:
        assert held.wait(20)
        return (yield from handler_transaction.complete(*arguments))

    monkeypatch.setattr(EngineTransactions, "committed", watched)
    monkeypatch.setattr(AttemptTransaction, "settled", over)
    monkeypatch.setattr(transactions, "complete", complete)
    late = plan(
        **{"effect: transactional": "effect: transactional, timeout_seconds: 1", "max_attempts: 2": "max_attempts: 1"}
    )
    report = run(url, post_here, compiled=late)
    assert (report.status, entries(url)) == ("complete", 1)
    assert (told, violations(url)) == (["post"], 0)


QUEUED = worker_settings(result_path="queued")


@pytest.mark.parametrize("options", [{"settings": QUEUED}, {"backend": "memory"}])
def test_other_paths_of_results_and_other_backends_are_the_same(url: str, options: dict[str, Any]) -> None:
    report = run(url, post_here, **options)
    assert (report.status, entries(url), violations(url)) == ("complete", 1, 0)


def test_events_of_the_step_are_stored_with_it(url: str) -> None:
    events = "effect: transactional, publishes_events: [{name: ledger.posted}]"
    report = run(url, post_here, compiled=plan(**{"effect: transactional": events}))
    assert report.status == "complete"
    same = "(select xmin from tasker.domain_events) = (select xmin from public.entry)"
    assert value(url, f"select count(*) = 1 and {same} from tasker.domain_events"), "in the same transaction"
