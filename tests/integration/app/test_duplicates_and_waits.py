"""What a program hears of a task that exists already, and of one that it waits for in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

import tasker
from tasker.app.app import App
from tasker.app.lifecycle import RunOptions
from tasker.errors import DuplicateTask, IdempotencyKeyReused, TaskNotFound, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import OnDuplicate, Submission, SubmissionResult
from tasker.services.tasks import waiting as waiters
from tasker.template.plan import Plan

NOBODY = "01900000-0000-7000-8000-000000000000"


def test_a_duplicate_carries_the_task_that_exists_and_does_not_tell_strangers(app: tasker.SyncApp, plan: Plan) -> None:
    first = app.run(plan, {"name": "Ada"}, idempotency_key="k")
    with pytest.raises(DuplicateTask) as caught:
        app.submit(plan, {"name": "Ada"}, idempotency_key="k")

    assert type(caught.value) is DuplicateTask
    assert (caught.value.task_uuid, caught.value.state) == (first.task_uuid, "complete")
    assert first.task_uuid not in str(caught.value.to_dict()), "the error may be handed to somebody else"


def test_a_duplicate_can_be_taken_instead_of_refused(app: tasker.SyncApp, plan: Plan) -> None:
    first = app.submit(plan, {"name": "Ada"}, idempotency_key="k", on_duplicate="return")
    again = app.submit(plan, {"name": "Ada"}, idempotency_key="k", on_duplicate="return")
    outcome = app.run(plan, {"name": "Ada"}, idempotency_key="k", on_duplicate="return")

    assert (first.created, again) == (True, SubmissionResult(first.task_uuid, 1, created=False))
    assert outcome.results == {"greet": {"text": "Hello, Ada!"}}
    with pytest.raises(UsageError, match="on_duplicate"):
        app.submit(plan, {"name": "Bob"}, idempotency_key="k", on_duplicate="ignore")


@pytest.mark.parametrize("on_duplicate", ["refuse", "return"])
def test_idempotency_key_with_another_input_is_refused_with_the_differing_paths(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan, on_duplicate: OnDuplicate
) -> None:
    stored = {"name": "Ada", "rows": [{"n": 1}, {"n": 2}], "old": 1, "yes": True}
    given = {"name": "Bob", "rows": [{"n": 1.0}, {"n": 3}, 4], "new": 1, "yes": 1}
    first = app.submit(plan, stored, idempotency_key="k")

    with pytest.raises(IdempotencyKeyReused) as caught:
        app.submit(plan, given, idempotency_key="k", on_duplicate=on_duplicate)
    with Session(engine) as session, pytest.raises(IdempotencyKeyReused) as in_transaction:
        app.submit_in(session, plan, given, idempotency_key="k")

    assert caught.value.task_uuid == in_transaction.value.task_uuid == first.task_uuid
    assert caught.value.message == in_transaction.value.message
    assert caught.value.message.splitlines() == [
        "the idempotency key was used for a task with another input:",
        "  $.name: differs from the existing task",
        "  $.new: is not in the existing task",
        "  $.old: is only in the existing task",
        "  $.rows[1].n: differs from the existing task",
        "  $.rows[2]: is not in the existing task",
        "  $.yes: differs from the existing task",
    ]


def test_each_of_many_with_one_key_is_compared_with_the_task_that_exists(app: tasker.SyncApp, plan: Plan) -> None:
    requests = [Submission({"name": name}, idempotency_key="k") for name in ("Ada", "Bob", "Ada")]

    created, reused, duplicate = app.submit_many(plan, requests)

    assert isinstance(created, SubmissionResult)
    assert isinstance(reused, IdempotencyKeyReused)
    assert type(duplicate) is DuplicateTask
    assert reused.task_uuid == duplicate.task_uuid == created.task_uuid


def test_every_run_without_a_key_is_a_new_task_also_where_the_key_is_none(app: tasker.SyncApp, plan: Plan) -> None:
    options: list[RunOptions] = [{}, {"idempotency_key": None}, {"idempotency_key": None}]
    assert len({app.run(plan, {"name": "Ada"}, **each).task_uuid for each in options}) == 3


def test_each_duplicate_of_many_carries_its_own_task(app: tasker.SyncApp, plan: Plan) -> None:
    kept = app.submit(plan, {"name": "a"}).task_uuid
    old, new, same = app.submit_many(plan, [Submission({"name": name}) for name in ("a", "b", "b")])

    assert isinstance(old, DuplicateTask)
    assert isinstance(same, DuplicateTask)
    assert (old.task_uuid, same.task_uuid) == (kept, new.task_uuid)


def test_a_duplicate_in_the_caller_s_transaction_carries_the_task_of_that_transaction(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    with Session(engine) as session:
        first = app.submit_in(session, plan, {"name": "Ada"})
        with pytest.raises(DuplicateTask) as caught:
            app.submit_in(session, plan, {"name": "Ada"})

    assert caught.value.task_uuid == first.task_uuid


@pytest.mark.parametrize("wait", [tasker.SyncApp.wait, tasker.SyncApp.finished], ids=["for the report", "for the end"])
def test_a_wait_for_what_is_no_task_ends_at_once(app: tasker.SyncApp, plan: Plan, wait: Callable[..., object]) -> None:
    with pytest.raises(UsageError, match="'42' is not a task's identifier"):
        wait(app, "42")
    with pytest.raises(TaskNotFound, match=f"no task {NOBODY}"):
        wait(app, NOBODY)


async def test_a_wait_for_an_unknown_task_disturbs_nobody_else(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with App(database_url, registry=registry) as app:
        real = await app.submit(plan, {"name": "x"})
        ended = await asyncio.gather(app.wait(NOBODY), app.wait(real.task_uuid.upper()), return_exceptions=True)

    assert isinstance(ended[0], TaskNotFound)
    assert not isinstance(ended[1], BaseException)
    assert ended[1].succeeded


async def test_a_wait_that_gives_up_says_which_task_how_it_stands_and_how_to_wait_on(
    database_url: str, registry: HandlerRegistry, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "STATE_SECONDS", 120)  # a busy machine takes its time
    async with App(database_url, registry=registry, work=False) as app:
        task = (await app.submit(plan, {"name": "x"})).task_uuid
        with pytest.raises(TimeoutError) as caught:
            await app.wait(task, timeout=0.01)
        await app.tasks.cancel(task)
        cancelled = await app.wait(task, timeout=0)
        for read in (app.wait(NOBODY, timeout=0), app.tasks.state(NOBODY), app.tasks.report(NOBODY)):
            with pytest.raises(TaskNotFound):
                await read

    assert cancelled.status == "cancelled"
    assert str(caught.value) == (
        f"task {task} has not ended after 0.01 s and goes on: it is steps_in_process. To keep waiting: "
        f"wait('{task}'), or in a shell: tasker task watch {task}"
    )


def test_a_run_gives_up_in_its_time_also_where_its_submission_waits_for_somebody_else(
    app: tasker.SyncApp, engine: sqlalchemy.Engine, plan: Plan
) -> None:
    app.run(plan, {"name": "Ada"})
    with Session(engine) as session:
        app.submit_in(session, plan, {"name": "Ada"}, idempotency_key="k")
        with pytest.raises(TimeoutError) as caught:
            app.run(plan, {"name": "Bob"}, idempotency_key="k", timeout=0.1)
        session.rollback()
    assert str(caught.value) == (
        "the submission was not answered within 0.1 s: the task may have been created, or not. "
        "To run it in either case: run(..., idempotency_key='k', on_duplicate='return')"
    )
    outcome = app.run(plan, {"name": "Bob"}, idempotency_key="k", on_duplicate="return", timeout=60)
    assert outcome.results == {"greet": {"text": "Hello, Bob!"}}


async def test_a_wait_outlasts_an_outage_to_the_report_also_where_the_breaker_has_let_somebody_else_try(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with App(database_url, registry=registry) as app:
        breaker = app.breakers.database
        task = (await app.submit(plan, {"name": "Ada"})).task_uuid
        breaker.force_open()
        breaker.encouraged()
        trial = breaker.should_allow()
        assert trial is not None
        waiting = asyncio.create_task(app.wait(task))
        while not (waiting.done() or breaker.metrics().refused):
            await asyncio.sleep(0.01)
        breaker.force_closed()
        report = await waiting

    assert report.succeeded
