"""Whoever submits learns what became of it, also when the commit outlasts a limit or the connection ends before it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import psycopg
import pytest

from tasker.clock import SystemClock, new_task_uuid
from tasker.db.connection import Connection
from tasker.engine.answers import SubmitAnswer
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.errors import (
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    DuplicateTask,
    LockTimeout,
    PoolExhausted,
    StatementTimeout,
)
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.submission import lost_commit as unanswered
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.submit import Submission, SubmissionResult, Submitter
from tasker.settings.queues import DepthThresholds
from tests.support.waiting import until
from tests.unit.handlers.support import plan_of, step_plan

PLAN = plan_of(step_plan())
COMMIT, WAKING = 77, 78
"""Advisory locks: whoever holds one keeps all commits of submissions, or what is done behind them, from going on."""
SLOW = f"""
create function public.slow_commit() returns trigger language plpgsql as
  'begin perform pg_advisory_xact_lock_shared({COMMIT}); return null; end';
create constraint trigger slow_commit after insert on tasker.task_details
  deferrable initially deferred for each row execute function public.slow_commit();
create or replace function tasker.wake_v1(p_namespaces text[]) returns int language plpgsql as
  'begin perform pg_advisory_xact_lock_shared({WAKING}); return 0; end';
"""


@pytest.fixture(scope="module")
def url(module_database_url: str) -> str:
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        connection.execute(SLOW)
    return module_database_url


@pytest.fixture
def holder(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@dataclass
class Program:
    connection: Connection
    submitter: Submitter

    async def submit(self, key: str | None = None) -> SubmissionResult:
        return await self.submitter.submit(PLAN, Submission({}, idempotency_key=key or str(uuid4())))

    def lose_connection(self) -> None:
        """As a cut cable does: the server hears nothing of it while it is busy."""
        driver: Any = self.connection._connection
        end = socket.socket(fileno=os.dup(driver.fileno()))
        end.shutdown(socket.SHUT_RDWR)
        end.close()


@asynccontextmanager
async def program(url: str, settings: str = "") -> AsyncIterator[Program]:
    connection = Connection(url, settings=settings)
    engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
    made = Program(connection, Submitter(engine, PlanStore(connection), new_task_uuid))
    await made.submit()  # the template is registered, the namespace has its queue
    yield made
    await connection.close()


async def blocked(holder: psycopg.Connection[Any], kind: str) -> None:
    """Return once a session waits for a lock of that kind."""
    query = (
        "select from pg_locks l join pg_stat_activity a using (pid) "
        "where not l.granted and l.locktype = %s and a.datname = current_database()"
    )
    await asyncio.to_thread(until, lambda: holder.execute(query, [kind]).fetchone() is not None, f"it waits: {kind}")


def exists(holder: psycopg.Connection[Any], task: SubmissionResult) -> bool:
    return holder.execute("select 1 from tasker.tasks where task_uuid = %s", [task.task_uuid]).fetchone() is not None


def tasks(holder: psycopg.Connection[Any]) -> int:
    return int((holder.execute("select count(*) from tasker.tasks").fetchone() or (0,))[0])


async def test_a_task_that_exists_when_the_statement_runs_out_of_time_is_answered(
    url: str, holder: psycopg.Connection[Any]
) -> None:
    async with program(url, "-c statement_timeout=300") as here:
        holder.execute("select pg_advisory_lock(%s)", [WAKING])
        task = await here.submit()

        assert task.created
        assert exists(holder, task)


async def test_of_many_that_ran_out_of_time_each_is_told_apart(url: str, holder: psycopg.Connection[Any]) -> None:
    async with program(url, "-c statement_timeout=300") as here:
        before = await here.submit("before")
        holder.execute("select pg_advisory_lock(%s)", [WAKING])
        requests = [Submission({}, idempotency_key=key) for key in ("new", "before", "new")]
        new, old, again = await here.submitter.submit_many(PLAN, requests)

        assert isinstance(new, SubmissionResult)
        assert new.created
        for duplicate, of in ((old, before), (again, new)):
            assert isinstance(duplicate, DuplicateTask)
            assert duplicate.task_uuid == of.task_uuid


async def test_a_submission_that_ran_out_of_time_before_it_was_stored_is_an_error(
    url: str, holder: psycopg.Connection[Any]
) -> None:
    async with program(url, "-c statement_timeout=300") as here:
        before = tasks(holder)
        holder.execute("select pg_advisory_lock(%s)", [COMMIT])
        with pytest.raises(StatementTimeout):
            await here.submit()

        assert tasks(holder) == before


async def test_submission_of_which_nothing_could_be_read_may_exist(url: str, holder: psycopg.Connection[Any]) -> None:
    async with program(url, "-c statement_timeout=300") as here:
        with holder.transaction():
            holder.execute("lock table tasker.task_details in access exclusive mode")
            with pytest.raises(ConnectionLost, match="it is not known whether the task was created") as caught:
                await here.submit()

    assert "idempotency_key" in str(caught.value.hint)


async def test_a_commit_that_is_still_under_way_when_the_connection_is_lost_is_waited_for(
    url: str, holder: psycopg.Connection[Any]
) -> None:
    async with program(url) as here:
        before = tasks(holder)
        holder.execute("select pg_advisory_lock(%s)", [COMMIT])
        submission = asyncio.create_task(here.submit())
        await blocked(holder, "advisory")
        here.lose_connection()
        await blocked(holder, "transactionid")  # behind the one that goes on
        holder.execute("select pg_advisory_unlock(%s)", [COMMIT])
        task = await submission

        assert task.created
        assert exists(holder, task)
        assert tasks(holder) == before + 1


async def test_a_submission_whose_session_was_ended_before_its_commit_is_made_once_more(
    url: str, holder: psycopg.Connection[Any]
) -> None:
    async with program(url) as here:
        before = tasks(holder)
        holder.execute("select pg_advisory_lock(%s)", [COMMIT])
        submission = asyncio.create_task(here.submit())
        await blocked(holder, "advisory")
        holder.execute(
            "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and not granted "
            "and database = (select oid from pg_database where datname = current_database())"
        )
        holder.execute("select pg_advisory_unlock(%s)", [COMMIT])
        task = await submission

        assert task.created
        assert exists(holder, task)
        assert tasks(holder) == before + 1


async def test_a_look_at_the_depth_whose_session_was_ended_is_repeated(
    url: str, holder: psycopg.Connection[Any]
) -> None:
    async with program(url) as here:
        engine = Engine(here.connection, MessagingService(load_backend("pgmq", {})))
        admission = SubmissionAdmission(engine, SystemClock(), DepthThresholds())
        with holder.transaction():
            holder.execute("lock table tasker.enqueue_counters in access exclusive mode")
            look = asyncio.create_task(admission.require(PLAN))
            await blocked(holder, "relation")
            ended = holder.execute(
                "select pg_terminate_backend(pid) from pg_locks where locktype = 'relation' and not granted "
                "and database = (select oid from pg_database where datname = current_database())"
            ).fetchall()
        await look
        assert ended == [(True,)], "it was the look that had to be repeated"


async def test_a_database_that_stays_away_is_an_error_that_says_that_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unanswered, "PATIENCE_SECONDS", 0.1)
    engine = AsyncMock()
    engine.submit.side_effect = [ConnectionLost("the connection to db was lost"), *[DatabaseUnavailable("gone")] * 99]
    with pytest.raises(ConnectionLost, match="it is not known whether") as caught:
        await unanswered.submit_with_recovery(engine, {}, {})

    assert "idempotency_key" in str(caught.value.hint)


@pytest.mark.parametrize("hindrance", [StatementTimeout, LockTimeout, PoolExhausted])
async def test_what_keeps_a_repetition_from_an_answer_says_nothing_of_the_first_submission(
    hindrance: type[DatabaseError],
) -> None:
    """The first may hang in its commit: its tasks are not to be seen yet, and come to be."""
    engine, answer = AsyncMock(), SubmitAnswer(created=frozenset({"task"}))
    engine.connection.execute.return_value = []
    engine.submit.side_effect = [ConnectionLost("the connection to db was lost"), hindrance("too long"), answer]

    assert await unanswered.submit_with_recovery(engine, {}, {"task": "identity"}) is answer


async def test_a_repetition_that_runs_out_of_time_sees_that_the_first_submission_is_stored() -> None:
    engine = AsyncMock()
    engine.connection.execute.return_value = [("identity", "task", "pending", 1)]
    engine.submit.side_effect = [ConnectionLost("the connection to db was lost"), StatementTimeout("too long")]

    assert not (await unanswered.submit_with_recovery(engine, {}, {"task": "identity"})).created


async def test_a_server_that_was_never_reached_is_not_asked_again() -> None:
    engine = AsyncMock()
    engine.submit.side_effect = [DatabaseUnavailable("refused")]
    with pytest.raises(DatabaseUnavailable, match="refused"):
        await unanswered.submit_with_recovery(engine, {}, {})
