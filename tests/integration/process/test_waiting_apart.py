"""A program that waits for tasks which other processes end hears of it by notification; polls are the net below."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest

import tasker
from tasker.app.worker_assembly import worker_process
from tasker.clock import BackoffPolicy
from tasker.messaging.listening_modes import DeploymentMode
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.services.tasks import waiting as waiters
from tasker.services.tasks.end_listeners import OwnListener
from tests.integration.process.programs import (
    QUICK,
    cut,
    eventually,
    listening,
    plan,
    registry,
    runs,
    settings,
    submitting,
    working,
)
from tests.integration.process.test_orchestrator import orchestrating
from tests.support.servers.pooler import transaction_pooler

OURS = "tasker wait"
NEVER = BackoffPolicy(3600, 3600)
SOON = BackoffPolicy(0.01, 0.01)
WORKER = settings(DeploymentMode.HYBRID)


@pytest.fixture
def no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits looks once at first, and then not in an hour."""
    monkeypatch.setattr(waiters, "POLLS", NEVER)
    monkeypatch.setattr(waiters, "NOTIFIED", NEVER)


@pytest.fixture
def told(database_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Nobody is told anything: each time somebody was to be, that is a row of the table `told`."""
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("create table public.told (tasks jsonb)")
        admin.execute(
            "create or replace function tasker.notify_waiters_v1(p_waiters jsonb) returns int language sql"
            " begin atomic insert into public.told values (p_waiters) returning 1; end"
        )
        yield admin


def tellings(told: psycopg.Connection[tuple[object, ...]]) -> object:
    """How often somebody was to be told."""
    (row,) = told.execute("select count(*) from public.told").fetchall()
    return row[0]


@asynccontextmanager
async def hearing(url: str, **options: object):  # type: ignore[no-untyped-def]
    """A program that hears already."""
    async with submitting(url, **options) as program:
        listener = program._waiters._listener
        listener.open()
        await eventually(lambda: listener.is_listening, "it hears")
        yield program


async def run(program: tasker.App, number: int = 0) -> None:
    report = await program.run(plan(), {"n": number}, timeout=60)
    assert report.status == "complete"


@pytest.mark.usefixtures("no_polls")
async def test_a_task_that_another_process_runs_ends_for_who_waits_by_a_notification(database_url: str) -> None:
    async with working(database_url, WORKER), hearing(database_url) as program:
        for number in range(5):
            await run(program, number)


@pytest.mark.usefixtures("no_polls")
async def test_who_begins_to_hear_after_the_end_looks_then(database_url: str) -> None:
    async with working(database_url, WORKER), submitting(database_url) as program:
        await run(program)
        assert listening(database_url, OURS)


@pytest.mark.usefixtures("no_polls")
async def test_a_task_that_was_submitted_without_waiting_or_by_somebody_else_is_told_as_well(database_url: str) -> None:
    async with hearing(database_url) as program, submitting(database_url) as other:
        mine = await program.submit(plan(), idempotency_key="a")
        theirs = await other.submit(plan(), idempotency_key="b")
        waiting = [asyncio.create_task(program.wait(each.task_uuid)) for each in (mine, theirs)]
        await eventually(lambda: len(program._waiters._notified) == 2, "their ends will be told")
        async with working(database_url, WORKER), asyncio.timeout(60):
            assert {(await each).status for each in waiting} == {"complete"}


@pytest.mark.usefixtures("no_polls")
async def test_many_who_wait_are_all_told(database_url: str) -> None:
    async with working(database_url, WORKER), hearing(database_url) as program:
        requests = [Submission({}, idempotency_key=str(number)) for number in range(1000)]
        submitted = await program.submit_many(plan(), requests, awaited=True)
        ends = [program.finished(each.task_uuid) for each in submitted if isinstance(each, SubmissionResult)]
        async with asyncio.timeout(120):
            await asyncio.gather(*ends)
    assert len(ends) == 1000


@pytest.mark.usefixtures("no_polls")
async def test_who_waits_hears_of_a_cancellation_by_another_program(database_url: str) -> None:
    async with hearing(database_url) as program, submitting(database_url) as operator:
        task = (await program.submit(plan(), awaited=True)).task_uuid
        waiting = asyncio.create_task(program.wait(task))
        await eventually(lambda: task in program._waiters._waiting, "it waits")
        await operator.tasks.cancel(task)
        async with asyncio.timeout(60):
            assert (await waiting).status == "cancelled"


@pytest.mark.usefixtures("no_polls")
async def test_who_waits_hears_of_an_end_by_an_orchestrator(database_url: str) -> None:
    queued = replace(WORKER, execution=WORKER.execution.replace(result_path="queued"))
    async with orchestrating(database_url), hearing(database_url) as program:
        worker = worker_process(database_url, program.messaging, registry(), ["ears"], settings=queued, consume=False)
        await worker.start()
        await run(program)
        await worker.stop()


@pytest.mark.usefixtures("no_polls")
async def test_a_worker_s_own_program_hears_of_what_another_worker_ended(database_url: str) -> None:
    """Its own worker has stopped to work, and listens still."""
    async with working(database_url, WORKER) as program:
        runtime = program.runtime
        assert runtime is not None
        await eventually(lambda: runtime.is_listening, "it hears")
        runtime.execution.stop_claiming()
        async with working(database_url, WORKER):
            await run(program)


async def test_nobody_is_told_of_what_nobody_waits_for_or_what_the_own_worker_ends(
    database_url: str, told: psycopg.Connection[tuple[object, ...]]
) -> None:
    async with working(database_url, WORKER) as program:
        runtime = program.runtime
        assert runtime is not None
        await eventually(lambda: runtime.is_listening, "it hears")
        await run(program)
        submitted = await program.submit(plan(), idempotency_key="b")
        await program.finished(submitted.task_uuid, timeout=60)
    assert tellings(told) == 0


async def test_an_end_whose_telling_was_lost_is_found_by_a_poll(
    database_url: str, told: psycopg.Connection[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "NOTIFIED", SOON)
    async with working(database_url, WORKER), hearing(database_url) as program:
        await run(program)
    assert tellings(told) == 1


@pytest.mark.usefixtures("no_polls")
async def test_what_ended_while_the_connection_was_lost_is_found_when_it_is_back(database_url: str) -> None:
    async with hearing(database_url) as program:
        running = asyncio.create_task(run(program))
        await eventually(lambda: bool(program._waiters._waiting), "it waits")
        listener = program._waiters._listener
        listener._url = "postgresql://nobody@127.0.0.1:1/nowhere"  # type: ignore[attr-defined]
        cut(database_url, OURS)
        await eventually(lambda: not listener.is_listening, "it hears nothing")
        async with working(database_url, WORKER) as worker:
            await runs(worker)
            listener._url = database_url  # type: ignore[attr-defined]
            async with asyncio.timeout(60):
                await running


async def test_through_a_transaction_pooler_polls_find_the_end_and_nobody_is_asked_to_tell_it(
    database_url: str, told: psycopg.Connection[tuple[object, ...]]
) -> None:
    with transaction_pooler(database_url) as pooler:
        async with working(database_url, WORKER), submitting(pooler) as program:
            await run(program, 1)
            await eventually(lambda: not program._waiters._listener.useful, "it knows that it does not hear")
            await eventually(lambda: tellings(told) == 1, "the first one was to be told, as it did not know then")
            told.execute("truncate public.told")
            await run(program, 2)
    assert tellings(told) == 0


async def test_nobody_listens_where_that_is_not_wanted(database_url: str) -> None:
    deaf = settings(DeploymentMode.POLLING_ONLY)
    async with working(database_url, deaf), submitting(database_url, settings=deaf) as program:
        await run(program)
        assert listening(database_url, OURS) == []


async def test_the_listening_connection_is_open_only_while_somebody_waits(database_url: str) -> None:
    heard: list[object] = []
    async with submitting(database_url) as program:
        assert listening(database_url, OURS) == []
        listener = OwnListener(
            database_url, "w", QUICK, program._connection.watch, heard=heard.append, linger_seconds=0
        )
        listener.open()
        await eventually(lambda: listener.is_listening, "it hears")
        listener.rest()
        listener.open()
        assert listener.is_listening, "somebody waits again at once"
        listener.rest()
        await eventually(lambda: listening(database_url, OURS) == [], "it is closed")
    assert not listener.is_listening
