"""Between the refusal of a duplicate and the look at the task in its way something may happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest
import pytest_asyncio

import tasker
from tasker.engine.guarded_connection import GuardedConnection
from tasker.errors import ConnectionLost, DuplicateTask
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import DUPLICATED, Submission, SubmissionResult
from tasker.template.plan import Plan

BeforeLook = Callable[[Callable[[], object]], None]
PRUNE = """select tasker.prune_v1(jsonb_build_object('named_task_uuid', named_task_uuid, 'failed', troubled,
  'before', now() - interval '12 hours', 'steps', 1000)) from tasker.tasks where task_uuid = %s"""


@pytest_asyncio.fixture
async def running(database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, registry=registry) as app:
        yield app


@pytest.fixture
def before_look(monkeypatch: pytest.MonkeyPatch) -> BeforeLook:
    """Has something happen before the first look at tasks that are in the way."""
    original: Callable[..., Awaitable[Any]] = GuardedConnection.execute

    def arrange(happens: Callable[[], object]) -> None:
        left = [happens]

        async def execute(self: GuardedConnection, statement: str, params: Any = None) -> Any:
            if statement == DUPLICATED and left:
                left.pop()()
            return await original(self, statement, params)

        monkeypatch.setattr(GuardedConnection, "execute", execute)

    return arrange


def prune(url: str, task: str) -> None:
    """As retention does, long after the end of the task."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "update tasker.tasks set completed_at = now() - interval '1 day' where task_uuid = %s", (task,)
        )
        connection.execute(PRUNE, (task,))


@pytest.mark.parametrize("on_duplicate", ["refuse", "return"])
async def test_a_duplicate_of_a_task_that_is_deleted_meanwhile_is_created(
    running: tasker.App, plan: Plan, before_look: BeforeLook, on_duplicate: Any
) -> None:
    first = await running.run(plan, {"name": "Ada"}, idempotency_key="k")
    before_look(lambda: prune(running.database_url, first.task_uuid))
    second = await running.submit(plan, {"name": "Bob"}, idempotency_key="k", on_duplicate=on_duplicate)
    assert second.created
    assert (await running.wait(second.task_uuid)).results == {"greet": {"text": "Hello, Bob!"}}


async def test_of_many_only_that_one_is_submitted_again(
    running: tasker.App, plan: Plan, before_look: BeforeLook
) -> None:
    ended = await running.run(plan, {"name": "Ada"}, idempotency_key="ended")
    kept = await running.submit(plan, {"name": "Ada"}, idempotency_key="kept")
    before_look(lambda: prune(running.database_url, ended.task_uuid))
    keys = ("new", "ended", "kept")
    requests = [Submission({"name": key}, idempotency_key=key) for key in keys]
    new, again, old = await running.submit_many(plan, requests)
    assert isinstance(new, SubmissionResult)
    assert isinstance(again, SubmissionResult)
    assert isinstance(old, DuplicateTask)
    assert old.task_uuid == kept.task_uuid
    for task in (new, again):
        assert (await running.wait(task.task_uuid)).succeeded


async def test_a_connection_that_is_lost_before_the_look_hides_no_duplicate(
    running: tasker.App, plan: Plan, before_look: BeforeLook
) -> None:
    def lose() -> None:
        raise ConnectionLost("the connection ended during a statement")

    first = await running.submit(plan, {"name": "Ada"}, idempotency_key="k")
    before_look(lose)
    again = await running.submit(plan, {"name": "Ada"}, idempotency_key="k", on_duplicate="return")
    assert (again.task_uuid, again.created) == (first.task_uuid, False)
