"""`tasker task`: submit, inspect, cancel and repair tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.guessing import GuessingGroup
from tasker.cli.place.naming import require_known_filter
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import screen_width
from tasker.cli.task.covering import SHOW_SENSITIVE, covered
from tasker.cli.task.explain import explain
from tasker.cli.task.logs import logs
from tasker.cli.task.lookup import find_task
from tasker.cli.task.request import refused, request
from tasker.cli.task.rerun import rerun
from tasker.cli.task.retry import retry
from tasker.cli.task.since import since
from tasker.cli.task.step import step
from tasker.cli.task.steps import audit, complete_step, reset_step, resolve_step, steps
from tasker.cli.task.submit import submit
from tasker.cli.task.watch import watch
from tasker.errors import StepNotFound
from tasker.lifecycle.machines.task import TaskState

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.services.listings import TaskSummary, TransitionDetail
    from tasker.services.reports import TaskReport


@click.group(cls=GuessingGroup)
def task() -> None:
    """Submit, watch, list, show, explain, repair and cancel tasks.

    A task is named by its UUID or by a prefix of it with at least eight characters.
    """


task.add_command(step)
task.add_command(steps)
task.add_command(audit)
task.add_command(reset_step)
task.add_command(resolve_step)
task.add_command(complete_step)
task.add_command(submit)
task.add_command(watch)
task.add_command(explain)
task.add_command(logs)
task.add_command(retry)
task.add_command(rerun)
task.add_command(request)
task.add_command(refused)


@task.command("list")
@click.option("--status", type=click.Choice([state.value for state in TaskState]), help="Filter by state.")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--template", metavar="NAME", help="Filter by template.")
@click.option("--since", type=since, metavar="2h|7d|DATE", help="Only tasks created since then.")
@click.option("--tag", "tags", metavar="TEXT", multiple=True, help="Filter by tag; repeatable: tasks with all of them.")
@click.option("--version", metavar="X.Y.Z", help="Filter by template version.")
@click.option("--initiator", metavar="NAME", help="Filter by initiator.")
@click.option("--source-system", metavar="NAME", help="Filter by source system.")
@click.option("--correlation-id", metavar="UUID", help="Filter by correlation id.")
@click.option("--idempotency-key", metavar="KEY", help="Filter by idempotency key.")
@click.option("--fingerprint", metavar="F", help="Filter by failure fingerprint (see `tasker dlq groups`).")
@click.option("--field", metavar="'A.B = 7'", help="Filter by input field (see `tasker db index-inputs`).")
@click.option("--until", type=since, metavar="2h|7d|DATE", help="Only tasks created before then.")
@click.option("--open", is_flag=True, help="Only tasks that have not ended.")
@click.option("--oldest-first", is_flag=True, help="List the oldest first.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Maximum number of rows.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Number of rows to skip.")
@FORMAT
@fleet_options
def list_(form: str, place: FleetTarget, **which: Any) -> None:
    """List tasks, newest first. On a narrow screen identifiers are shortened; every command accepts a prefix.

    \b
    Examples:
      tasker task list
      tasker task list --status error --since 2h
      tasker task list --tag nightly --tag emea --format json
      tasker task list --open --oldest-first
      tasker task list --field 'order.id = 7'
    """
    from tasker.cli.render.task_list import list_text

    async def read(app: Fleet) -> Sequence[TaskSummary]:
        return await require_known_filter(app, await app.tasks.list(**which), which["namespace"], which["template"])

    rows = run_on_fleet(place, read)
    print_as(form, rows, lambda found: list_text(found, screen_width()))


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--traceback", is_flag=True, help="Print the whole traceback of each step's last failure.")
@click.option("--all", "every", is_flag=True, help="Show each instance of a batch worker, each failure, each result.")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def show(task_uuid: str, traceback: bool, every: bool, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show a task: its state, its steps, its failures, its results.

    Many instances of a batch worker are one line, followed by the failed ones; --all shows each of them. On a terminal
    rows are shortened to its width. JSON always has every step in full.
    """
    from tasker.cli.render.task import report_object, report_text

    async def read(app: Fleet) -> TaskReport:
        found = await app.tasks.report(await find_task(app.tasks, task_uuid))
        return await covered(app, found.task_uuid, found, show_sensitive)

    report = run_on_fleet(place, read)
    shown = partial(report_text, report, traceback=traceback, every=every, width=screen_width())
    print_as(form, report_object(report), lambda _: shown())


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--step", "name", metavar="NAME", help="Only the transitions of this step.")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def history(task_uuid: str, name: str | None, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show every transition of a task and its steps, with the time since the previous one.

    \b
    Examples:
      tasker task history 0199c1f4-8a52
      tasker task history 0199c1f4-8a52 --step process_payment
    """
    from tasker.cli.render.task import history_text

    async def read(app: Fleet) -> Sequence[TransitionDetail]:
        task = await find_task(app.tasks, task_uuid)
        return await covered(app, task, await app.tasks.history(task), show_sensitive)

    found = run_on_fleet(place, read)
    chosen = [row for row in found if name in (None, row.step)]
    if not chosen:
        names = ", ".join(dict.fromkeys(row.step for row in found if row.step))
        raise StepNotFound(f"task {task_uuid} has no step {name!r}", hint=f"expected one of: {names}")
    print_as(form, chosen, history_text)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history.")
@FORMAT
@fleet_options
def cancel(task_uuid: str, reason: str, form: str, place: FleetTarget) -> None:
    """Cancel a task and all its unfinished steps. Running handlers are asked to stop."""

    async def act(app: Fleet) -> dict[str, str]:
        found = await find_task(app.tasks, task_uuid)
        before = await app.tasks.cancel(found, reason=reason, actor=actor())
        return {"task_uuid": found, "status": "cancelled", "previous_status": before}

    done = run_on_fleet(place, act, operates=True)
    print_as(form, done, lambda done: f"cancelled {done['task_uuid']} (was {done['previous_status']})")
