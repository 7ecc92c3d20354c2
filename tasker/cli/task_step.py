"""`tasker task step`: mending single steps (C-121)."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import actor, connected
from tasker.cli.options import Database, database_options
from tasker.cli.render_values import echo
from tasker.cli.task_lookup import find_task

if TYPE_CHECKING:
    from tasker.app import App


@click.group()
def step() -> None:
    """Mend a step that failed or hangs; what was done, by whom and why is kept in the history."""


def _step_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """TASK_UUID, STEP and --reason, which every command here has."""
    with_reason = click.option("--reason", default="", metavar="TEXT", help="Why; kept in the history.")(command)
    with_step: Callable[..., Any] = click.argument("name", metavar="STEP")(database_options(with_reason))
    return click.argument("task_uuid", metavar="TASK_UUID")(with_step)


@step.command()
@_step_command
def reset(task_uuid: str, name: str, reason: str, database: Database) -> None:
    """Let a step in error run again, its attempts counted from zero.

    \b
    Example:
      tasker task step reset 0199c1f4-8a52 process_payment --reason "the provider is back"
    """
    _mend(database, task_uuid, lambda app, found: app.steps.reset(found, name, actor=actor(), reason=reason))


@step.command()
@_step_command
def resolve(task_uuid: str, name: str, reason: str, database: Database) -> None:
    """Take a step as done, without a result; what depends on it goes on."""
    _mend(database, task_uuid, lambda app, found: app.steps.resolve(found, name, actor=actor(), reason=reason))


@step.command()
@_step_command
@click.option("--result", required=True, metavar="JSON|@FILE|-", help="The result, an object; - is standard input.")
def complete(task_uuid: str, name: str, result: str, reason: str, database: Database) -> None:
    """Take a step as done with a result of your own; what depends on it goes on with that.

    \b
    Example:
      tasker task step complete 0199c1f4-8a52 process_payment --result '{"payment_id": "P-7"}'
    """
    from tasker.cli.run_input import read_object

    given = read_object(result, "--result", read_stdin=sys.stdin.read)
    _mend(database, task_uuid, lambda app, found: app.steps.complete(found, name, given, actor=actor(), reason=reason))


def _mend(database: Database, task_uuid: str, act: Callable[[App, str], Awaitable[None]]) -> None:
    async def find_and_act(app: App) -> str:
        found = await find_task(app.tasks, task_uuid)
        await act(app, found)
        state, final = await app.tasks.state(found)
        rest = "" if final else f"; to go on: tasker run --resume {found}{database.arguments()}"
        return f"done, the task is {state}{rest}"

    echo(connected(database, find_and_act))
