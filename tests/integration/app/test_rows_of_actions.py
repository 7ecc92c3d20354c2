"""What is done by hand and its row are one transaction: after whatever goes wrong there are both, or neither."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from click.testing import Result

import tasker
from tasker.app.configured import Configured
from tasker.db.session import Session
from tasker.db.transactions import Transaction
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.errors import ConnectionLost, DatabaseError, StateMachineError, TemplateError
from tasker.messaging.service import MessagingService
from tasker.settings.database import Database, PoolTable
from tasker.settings.retention import RetentionRule
from tasker.views.fleet import RecordedAction
from tests.integration.app.test_ends_by_operators import HELD
from tests.support.command_line import invoke

ROOT = Path(__file__).parents[3]
DYING = """
import asyncio, os, sys, tasker
from tasker.db.session import Session
from tasker.engine.calls import Engine

url, task, place = sys.argv[1:]
call, execute = Engine.call, Session.execute

async def calling(self, function, args):
    if place == "before it is done":
        os._exit(7)
    answer = await call(self, function, args)
    os._exit(7) if place == "before the commit" else None
    return answer

async def executing(self, statement, params=None):
    rows = await execute(self, statement, params)
    os._exit(7) if place == "behind the commit" and statement == "commit" else None
    return rows

async def main():
    async with tasker.App(url, work=False) as app:
        Engine.call, Session.execute = calling, executing
        await app.tasks.cancel(task)

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def app(module_database_url: str) -> AsyncIterator[tasker.App]:
    async with tasker.App(module_database_url, work=False) as running:
        yield running


@pytest_asyncio.fixture
async def task(app: tasker.App, tmp_path: Path) -> str:
    """It waits for a handler that nobody has."""
    (tmp_path / "held.yaml").write_text(HELD)
    return (await app.submit(tmp_path / "held.yaml", {"for": str(tmp_path)})).task_uuid


async def rows(app: tasker.App, task: str) -> list[RecordedAction]:
    """What was done to a task, the oldest first."""
    return [each for each in reversed(await app.operator_log.list(limit=1000)) if task in each.path]


async def standing(app: tasker.App, task: str) -> tuple[str, list[int | None]]:
    """The task's state, and the statuses of what was done to it."""
    return (await app.tasks.state(task))[0], [each.status for each in await rows(app, task)]


async def command(*arguments: str, database: str) -> Result:
    """A command, in a thread: it has a loop of its own."""
    return await asyncio.to_thread(invoke, *arguments, database=database)


def elsewhere(app: tasker.App, statement: str, *params: Any) -> Any:
    """The first value, as another session sees it."""
    with psycopg.connect(app.database_url, autocommit=True) as connection:
        row = connection.execute(statement.encode(), params).fetchone()
    return row and row[0]


@pytest.mark.parametrize(
    ("place", "left"),
    [
        ("before it is done", ("in_progress", [])),
        ("before the commit", ("in_progress", [])),
        ("behind the commit", ("cancelled", [0])),
    ],
)
async def test_a_program_that_dies_leaves_an_action_with_its_row_or_neither(
    app: tasker.App, task: str, place: str, left: tuple[str, list[int]]
) -> None:
    before = await app.tasks.state(task)
    program = [sys.executable, "-c", DYING, app.database_url, task, place]
    assert subprocess.run(program, cwd=ROOT, env={**os.environ}, check=False).returncode == 7
    state, statuses = await standing(app, task)
    assert (state, statuses) == (left[0] if left[1] else before[0], left[1])


async def test_a_connection_that_is_lost_before_the_commit_leaves_a_row_that_says_it_failed(
    app: tasker.App, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, before = Engine.call, await app.tasks.state(task)

    async def struck(self: Engine, function: str, args: Any) -> Any:
        answer = await call(self, function, args)
        elsewhere(
            app,
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where state = 'idle in transaction' and application_name = 'tasker app' and datname = current_database()",
        )
        return answer

    monkeypatch.setattr(Engine, "call", struck)
    with pytest.raises(ConnectionLost):
        await app.tasks.cancel(task)
    assert await app.tasks.state(task) == before
    (row,) = await rows(app, task)
    assert (row.endpoint, row.status, row.refusal) == ("App.tasks.cancel", 1, ConnectionLost.error_type)


async def test_what_is_committed_although_nobody_heard_so_has_the_row_of_what_is_done(
    app: tasker.App, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Session.execute

    async def deaf(self: Session, statement: str, params: Any = None) -> Any:
        found = await execute(self, statement, params)
        if statement == "commit":
            raise psycopg.OperationalError("the connection was closed before the answer came")
        return found

    monkeypatch.setattr(Session, "execute", deaf)
    with pytest.raises(ConnectionLost):
        await app.tasks.cancel(task)
    assert await standing(app, task) == ("cancelled", [0])


async def test_what_is_given_up_is_taken_back_and_has_a_row_without_a_status(app: tasker.App, task: str) -> None:
    before = await app.tasks.state(task)
    waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with psycopg.connect(app.database_url) as holder:
        holder.execute("select from tasker.tasks where task_uuid = %s::uuid for update", (task,))
        action = asyncio.create_task(app.tasks.cancel(task))
        while not elsewhere(app, waits):
            await asyncio.sleep(0)
        action.cancel()
        with pytest.raises(asyncio.CancelledError):
            await action
    assert await app.tasks.state(task) == before
    (row,) = await rows(app, task)
    assert (row.endpoint, row.status, row.refusal) == ("App.tasks.cancel", None, "given up before it was done")


async def test_what_fails_behind_its_call_takes_that_back_and_nobody_heard_of_it(
    app: tasker.App, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, before = list[str](), await app.tasks.state(task)
    monkeypatch.setattr(app._engine, "_on_finished", lambda task, state: heard.append(state))
    move = Engine.call_typed

    async def failing(*args: Any) -> Any:
        await move(*args)
        raise ValueError("a mistake in the code")

    monkeypatch.setattr(Engine, "call_typed", failing)
    with pytest.raises(ValueError, match="a mistake"):
        await app.tasks.cancel(task)
    assert (await app.tasks.state(task), heard) == (before, [])
    (row,) = await rows(app, task)
    assert (row.status, row.refusal) == (1, "ValueError")


async def test_what_is_told_of_an_action_is_true_for_everybody_by_then(
    app: tasker.App, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = "select state from tasker.tasks where task_uuid = %s::uuid"
    heard = []
    monkeypatch.setattr(app._engine, "_on_finished", lambda task, _: heard.append(elsewhere(app, state, task)))
    before = elsewhere(app, state, task)
    await app.tasks.cancel(task)
    assert heard == [elsewhere(app, state, task)] != [before]


CHAIN = HELD.replace("name: held", "name: chain").replace(
    "}]", "}, {name: next, dependencies: [only], handler: {callable: nobody_has_it}}]"
)


async def test_hints_of_an_action_are_sent_behind_its_commit_and_none_without_it(
    module_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chain.yaml").write_text(CHAIN)
    seen, send, execute = [], MessagingService.send_hints, Transaction.execute
    state = "select state from tasker.workflow_steps where task_uuid = %s::uuid and name = 'only'"

    async def looks(self: MessagingService, hints: Any) -> Any:
        seen.append(elsewhere(app, state, task))
        return await send(self, hints)

    async def refused(self: Transaction, statement: str, params: Any = None) -> Any:
        if statement == "commit":
            raise DatabaseError("the disk is full")
        return await execute(self, statement, params)

    async with tasker.App(module_database_url, backend="memory", work=False) as app:
        task = (await app.submit(tmp_path / "chain.yaml", {"for": str(tmp_path)})).task_uuid
        before = elsewhere(app, state, task)
        monkeypatch.setattr(MessagingService, "send_hints", looks)
        with monkeypatch.context() as patched:
            patched.setattr(Transaction, "execute", refused)
            with pytest.raises(DatabaseError, match="the disk is full"):
                await app.steps.complete(task, "only", {}, actor="ada", reason="by hand")
        assert seen == []
        await app.steps.complete(task, "only", {}, actor="ada", reason="by hand")
        assert seen == [elsewhere(app, state, task)] != [before]


async def test_a_task_that_outlives_what_was_asked_for_is_kept_by_itself(
    app: tasker.App, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, call = asyncio.Event(), Engine.call
    later: list[asyncio.Task[object]] = []

    async def afterwards() -> object:
        await over.wait()
        return await app.pause(task=task, actor="grace", reason="later")

    async def leaves(self: Engine, function: str, args: Any) -> Any:
        if not later:
            later.append(asyncio.create_task(afterwards()))
        return await call(self, function, args)

    monkeypatch.setattr(Engine, "call", leaves)
    await app.steps.complete(task, "only", {}, actor="ada", reason="by hand")
    over.set()
    with pytest.raises(StateMachineError):
        await later[0]
    assert [(each.actor, each.endpoint, each.status) for each in await rows(app, task)] == [
        ("ada", "App.steps.complete", 0),
        ("grace", "App.pauses.pause", 1),
    ]


async def test_one_connection_is_enough(module_database_url: str, task: str) -> None:
    one = Database(pool=PoolTable(max_connections=1, min_connections=0, acquire_timeout_seconds=60.0))
    configuration = Configured(database=one)
    async with tasker.App(module_database_url, configuration=configuration, work=False) as app, asyncio.timeout(50):
        await asyncio.gather(*(app.pause(task=task, actor=f"{number}", reason="so") for number in range(5)))
        await app.tasks.cancel(task)
        assert [each.status for each in await rows(app, task)] == [0] * 6


async def test_a_refused_action_has_a_row_with_the_reason(app: tasker.App, task: str) -> None:
    await app.tasks.cancel(task)
    with pytest.raises(StateMachineError):
        await app.tasks.cancel(task, actor="ada")
    done, refused = await rows(app, task)
    assert (done.status, done.refusal) == (0, None)
    assert (refused.actor, refused.status, refused.refusal) == (
        "ada",
        1,
        f"task {task} is cancelled and cannot be cancelled",
    )

    assert (await command("task", "cancel", task, database=app.database_url)).exit_code == 1
    by_command = (await rows(app, task))[-1]
    assert (by_command.endpoint, by_command.status) == ("tasker task cancel", 1)
    assert (
        f"task {task} is cancelled and cannot be cancelled"
        in (await command("actions", database=app.database_url)).output
    )


async def test_the_row_of_a_command_has_the_transaction_of_what_it_did(app: tasker.App, task: str) -> None:
    assert (await command("task", "cancel", task, database=app.database_url)).exit_code == 0
    assert_one_transaction(app, task)


async def test_the_row_of_an_action_of_a_program_has_its_transaction(app: tasker.App, task: str) -> None:
    await app.tasks.cancel(task)
    assert_one_transaction(app, task)


def assert_one_transaction(app: tasker.App, task: str) -> None:
    ours = "select array_agg(xmin::text) from tasker.operator_actions where path ~ %s"
    assert elsewhere(app, ours, task) == [
        elsewhere(app, "select xmin::text from tasker.tasks where task_uuid = %s::uuid", task)
    ]


Act = Callable[[tasker.App], Coroutine[Any, Any, object]]


async def pruned(app: tasker.App) -> object:
    return await app.retention.prune([RetentionRule(completed_days=30)])


async def registered(app: tasker.App) -> object:
    return await app.template_texts.register(HELD)


@pytest.mark.parametrize(
    ("endpoint", "act", "where"),
    [
        ("App.retention.prune", pruned, "tasker.services.database.RetentionService.targets"),
        ("App.template_texts.register", registered, "tasker.engine.plans.PlanStore.register"),
    ],
)
async def test_what_takes_several_transactions_has_a_row_before_the_first(
    app: tasker.App, endpoint: str, act: Act, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    newest = "select array[endpoint, status::text] from tasker.operator_actions order by action_uuid desc limit 1"

    async def looks(*args: Any, **options: Any) -> Any:
        seen.append(elsewhere(app, newest))
        return []

    monkeypatch.setattr(where, looks)
    await act(app)
    assert seen == [[endpoint, None]]
    assert elsewhere(app, newest) == [endpoint, "0"]


async def test_what_has_begun_and_fails_keeps_its_row_with_the_kind_of_the_error(
    app: tasker.App, tmp_path: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TemplateError):
        await app.template_texts.register(HELD.replace("nobody_has_it", "somebody_else_has_it"))
    (row, *_) = await app.operator_log.list(limit=1)
    assert (row.endpoint, row.status, row.refusal) == ("App.template_texts.register", 1, TemplateError.error_type)

    (tmp_path / "held.yaml").write_text(HELD)
    seen, register = [], PlanStore.register

    async def looks(*args: Any, **options: Any) -> Any:
        seen.append(
            elsewhere(app, "select count(*) from tasker.operator_actions where status is null and path = 'held.yaml'")
        )
        return await register(*args, **options)

    monkeypatch.setattr(PlanStore, "register", looks)
    monkeypatch.chdir(tmp_path)
    assert (await command("template", "register", "held.yaml", database=app.database_url)).exit_code == 0
    assert seen == [1]
