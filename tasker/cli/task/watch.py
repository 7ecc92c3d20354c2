"""`tasker task watch`: live view of a task that other processes run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tasker.__main__ import INTERRUPTED
from tasker.cli.connection import FORMAT
from tasker.cli.next_commands import next_text, watch_command
from tasker.cli.options import SECONDS
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import echo, screen_width
from tasker.cli.run.signals import interruption
from tasker.cli.task.covering import SHOW_SENSITIVE, covered
from tasker.cli.task.lookup import find_task

if TYPE_CHECKING:
    from tasker.cli.live import View
    from tasker.cli.place.fleet import Fleet
    from tasker.contracts.plan import Plan
    from tasker.services.reports import TaskReport

ADVICE = "Ctrl-C ends the view; the task continues"


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="Stop watching after this time.")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def watch(task_uuid: str, timeout: float | None, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show the progress of a task until it ends, whichever process runs it; nothing runs in this process.

    On a terminal it is the tree of `tasker run`, elsewhere one line for each change; with --format json each line is an
    object, and the last one is the task with "finished": true. Ctrl-C ends the view; the task continues.

    \b
    Examples:
      tasker task watch 0199c1f4-8a52
      tasker task watch $(tasker task submit shop/checkout --set order=7)

    \b
    Exit codes:
      0    complete
      1    failed, cancelled, or not ended within --timeout
      130  interrupted (Ctrl-C); the task continues
    """
    raise SystemExit(run_on_fleet(place, lambda app: _watch(app, task_uuid, timeout, show_sensitive, form, place)))


async def _watch(
    app: Fleet, named: str, timeout: float | None, show_sensitive: bool, form: str, place: FleetTarget
) -> int:
    from tasker.cli.live import Feed
    from tasker.cli.live.showing import first_of, show_while_waiting

    task, database = await find_task(app.tasks, named), place.arguments()
    plan = await app.pinned_plan(task)
    with interruption() as interrupted:
        interrupted.last_words = f"The task continues. To watch it again: {watch_command(task, database)}"
        if form == "text":
            echo(f"{click.style(plan.name, bold=True)} {plan.version} ({plan.namespace})  task {task}")
        async with show_while_waiting(Feed(app.tasks, task), _view(form, plan)):
            found = await first_of(app.wait(task), interrupted.asked, timeout)
        if not isinstance(found, str):
            return _ended(await covered(app, task, found, show_sensitive), form, database)
    why = "Interrupted" if found == "interrupted" else f"Not ended after {timeout:g} s"
    echo(f"{why}; the task continues. To watch it again:\n  {watch_command(task, database)}", to=sys.stderr)
    return INTERRUPTED if found == "interrupted" else 1


def _view(form: str, plan: Plan) -> View:
    if form == "json":
        from tasker.cli.live.json_lines import JsonLines

        return JsonLines(echo)
    from tasker.cli.live import view_on

    return view_on(sys.stdout, plan, ADVICE)


def _ended(report: TaskReport, form: str, database: str) -> int:
    from tasker.cli.render.outcome import outcome_text

    if form == "text":
        echo(outcome_text(report, screen_width()))
    if text := next_text(report, database, watch_command(report.task_uuid, database)):
        echo(text, to=sys.stderr if form == "json" else None)
    return 0 if report.succeeded else 1
