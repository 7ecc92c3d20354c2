"""`tasker task`: submit tasks, look at them, cancel them, and mend their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, connected, print_as
from tasker.cli.options import Database, database_options
from tasker.cli.render_values import echo
from tasker.cli.task_lookup import find_task
from tasker.cli.task_request import refused, request
from tasker.cli.task_step import step
from tasker.cli.task_submit import submit
from tasker.errors import UsageError
from tasker.lifecycle.task_machine import TaskState

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.services.reports import TaskReport


@click.group()
def task() -> None:
    """Submit, list, show and cancel tasks.

    A task is named by its UUID or by the beginning of it, at least eight characters.
    """


task.add_command(step)
task.add_command(submit)
task.add_command(request)
task.add_command(refused)


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

    print_as(form, connected(database, lambda app: app.tasks.list(**which)), list_text)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--traceback", is_flag=True, help="Print the whole traceback of each step's last failure.")
@FORMAT
@database_options
def show(task_uuid: str, traceback: bool, form: str, database: Database) -> None:
    """Show a task: its state, its steps, its failures, its results."""
    from tasker.cli.render_tasks import report_object, report_text

    async def read(app: App) -> TaskReport:
        return await app.tasks.report(await find_task(app.tasks, task_uuid))

    report = connected(database, read)
    print_as(form, report_object(report), lambda _: report_text(report, traceback=traceback))


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--step", "name", metavar="NAME", help="Only the transitions of this step.")
@FORMAT
@database_options
def history(task_uuid: str, name: str | None, form: str, database: Database) -> None:
    """Show every transition of a task and of its steps, with the time since the one before.

    \b
    Examples:
      tasker task history 0199c1f4-8a52
      tasker task history 0199c1f4-8a52 --step process_payment
    """
    from tasker.cli.render_tasks import history_text

    async def read(app: App) -> list[dict[str, Any]]:
        return await app.tasks.history(await find_task(app.tasks, task_uuid))

    found = connected(database, read)
    chosen = [row for row in found if name in (None, row["step"])]
    if not chosen:
        names = ", ".join(dict.fromkeys(row["step"] for row in found if row["step"]))
        raise UsageError(f"the task has no step {name!r}", hint=f"it has: {names}")
    print_as(form, chosen, history_text)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--reason", default="", metavar="TEXT", help="Why; kept in the history.")
@database_options
def cancel(task_uuid: str, reason: str, database: Database) -> None:
    """Cancel a task and every step of it that has not ended. Handlers that run are told to stop."""

    async def act(app: App) -> str:
        found = await find_task(app.tasks, task_uuid)
        state = await app.tasks.cancel(found, reason=reason, actor=actor())
        return f"cancelled {found}, which was {state}"

    echo(connected(database, act))
