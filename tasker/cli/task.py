"""`tasker task`: look at tasks, cancel them, and mend their steps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.options import Database, database_options
from tasker.cli.render_values import echo
from tasker.errors import StateMachineError, UsageError
from tasker.lifecycle.task_machine import TaskState

if TYPE_CHECKING:
    from tasker.services.tasks import Tasks

FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
REASON = click.option("--reason", default="", metavar="TEXT", help="Why; kept in the history.")
DEFAULT_FOLDER = ".tasker/postgres"


@click.group()
def task() -> None:
    """List, show and cancel tasks.

    A task is named by its UUID or by the beginning of it, at least eight characters.
    """


@task.command("list")
@click.option("--status", type=click.Choice([state.value for state in TaskState]), help="Only tasks in this state.")
@click.option("--namespace", metavar="NAME", help="Only tasks of this namespace.")
@click.option("--template", metavar="NAME", help="Only tasks of this template.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="At most so many.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Leave out so many of the newest.")
@FORMAT
@database_options
def list_(form: str, database: Database, **which: Any) -> None:
    """List tasks, the newest first.

    \b
    Examples:
      tasker task list
      tasker task list --status error --format json
    """
    from tasker.cli.render_tasks import list_text

    _print(database, form, lambda tasks: tasks.list(**which), list_text)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@FORMAT
@database_options
def show(task_uuid: str, form: str, database: Database) -> None:
    """Show a task: its state, its steps, its failures, its results."""
    from tasker.cli.render_tasks import report_object, report_text

    async def read(tasks: Tasks) -> Any:
        report = await tasks.report(await _found(tasks, task_uuid))
        return report_object(report) if form == "json" else report_text(report)

    _print(database, form, read, str)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--step", metavar="NAME", help="Only the transitions of this step.")
@FORMAT
@database_options
def history(task_uuid: str, step: str | None, form: str, database: Database) -> None:
    """Show every transition of a task and of its steps, with the time since the one before.

    \b
    Examples:
      tasker task history 0199c1f4-8a52
      tasker task history 0199c1f4-8a52 --step process_payment
    """
    from tasker.cli.render_tasks import history_text

    async def read(tasks: Tasks) -> list[dict[str, Any]]:
        found = await tasks.history(await _found(tasks, task_uuid))
        chosen = [row for row in found if step in (None, row["step"])]
        if not chosen:
            names = ", ".join(dict.fromkeys(row["step"] for row in found if row["step"]))
            raise UsageError(f"the task has no step {step!r}", hint=f"it has: {names}")
        return chosen

    _print(database, form, read, history_text)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@REASON
@database_options
def cancel(task_uuid: str, reason: str, database: Database) -> None:
    """Cancel a task and every step of it that has not ended. Handlers that run are told to stop."""

    async def act(tasks: Tasks) -> None:
        found = await _found(tasks, task_uuid)
        state = await tasks.cancel(found, reason=reason, actor=_actor())
        echo(f"cancelled {found}, which was {state}")

    _run(database, act)


@task.group()
def step() -> None:
    """Mend a step that failed or hangs; what was done, by whom and why is kept in the history."""


@step.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("name", metavar="STEP")
@REASON
@database_options
def reset(task_uuid: str, name: str, reason: str, database: Database) -> None:
    """Let a step in error run again, its attempts counted from zero. `tasker run --resume` then runs it."""

    async def act(tasks: Tasks, found: str) -> None:
        await tasks.reset_step(found, name, actor=_actor(), reason=reason)
        echo(f"{name} will run again: tasker run --resume {found}{database.arguments()}")

    _mend(database, task_uuid, act)


@step.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("name", metavar="STEP")
@REASON
@database_options
def resolve(task_uuid: str, name: str, reason: str, database: Database) -> None:
    """Take a step as done, without a result; what depends on it goes on."""

    async def act(tasks: Tasks, found: str) -> None:
        await tasks.resolve_step(found, name, actor=_actor(), reason=reason)
        await _say_what_is_next(tasks, found, f"{name} is resolved_manually", database)

    _mend(database, task_uuid, act)


@step.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.argument("name", metavar="STEP")
@click.option("--result", required=True, metavar="JSON|@FILE|-", help="The result, an object.")
@REASON
@database_options
def complete(task_uuid: str, name: str, result: str, reason: str, database: Database) -> None:
    """Take a step as done with a result of your own; what depends on it goes on with that."""
    from tasker.cli.run_input import read_input

    values = read_input(result, (), folder=None, read_stdin=click.get_text_stream("stdin").read).values

    async def act(tasks: Tasks, found: str) -> None:
        await tasks.complete_step(found, name, values, actor=_actor(), reason=reason)
        await _say_what_is_next(tasks, found, f"{name} is complete", database)

    _mend(database, task_uuid, act)


def _mend(database: Database, task_uuid: str, act: Callable[[Tasks, str], Awaitable[None]]) -> None:
    async def find_and_act(tasks: Tasks) -> None:
        await act(tasks, await _found(tasks, task_uuid))

    _run(database, find_and_act)


async def _say_what_is_next(tasks: Tasks, task_uuid: str, done: str, database: Database) -> None:
    state, final = await tasks.state(task_uuid)
    rest = f"the task is {state}" if final else f"go on with: tasker run --resume {task_uuid}{database.arguments()}"
    echo(f"{done}; {rest}")


def _print(
    database: Database, form: str, read: Callable[[Tasks], Awaitable[Any]], render: Callable[[Any], str]
) -> None:
    async def show(tasks: Tasks) -> None:
        found = await read(tasks)
        if form == "json":
            echo(json.dumps(found, default=_plain, ensure_ascii=False, indent=2))
        else:
            echo(render(found))

    _run(database, show)


def _run(database: Database, use: Callable[[Tasks], Coroutine[Any, Any, None]]) -> None:
    async def session() -> None:
        async with _tasks(database) as tasks:
            await use(tasks)

    asyncio.run(session())


@asynccontextmanager
async def _tasks(database: Database) -> AsyncIterator[Tasks]:
    from pathlib import Path

    from tasker.app import App

    folder = database.data_dir or Path(DEFAULT_FOLDER)
    if database.url is None and not folder.exists():
        raise UsageError(
            f"no task has run here: there is no database in {folder}",
            hint="`tasker run PATH` makes one; or go to the folder where you ran it, or name a server with --database-url",
        )
    app = App(database.url, backend=database.backend, data_dir=database.data_dir, work=False)
    async with app:
        yield app.tasks


async def _found(tasks: Tasks, text: str) -> str:
    from tasker.cli.task_lookup import find_task

    return await find_task(tasks, text)


def _actor() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
