"""`tasker task`: list, show, history, cancel, explain, retry and rerun."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands.task_again import rerun, retry
from tasker.cli.commands.task_compensate import compensate
from tasker.cli.commands.task_record import record
from tasker.cli.commands.task_replay import replay
from tasker.cli.commands.task_step import step
from tasker.cli.commands.task_steps import audit, complete_step, reset_step, resolve_step, steps
from tasker.cli.commands.task_submit import refused, request, submit
from tasker.cli.commands.task_watch import logs, since, watch
from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.covering import SHOW_SENSITIVE, seen
from tasker.cli.render.values import screen_width
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, find_task, fleet_options, require_known_filter, run_on_fleet
from tasker.engine.states.task import TaskState
from tasker.errors import StepNotFound
from tasker.operations.tasks import MOST_CHILDREN

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.views.children import TaskFamily
    from tasker.views.explanation import Explanation
    from tasker.views.task_lists import TaskSummary, TransitionDetail
    from tasker.views.tasks import TaskReport


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--step", "name", metavar="NAME", help="Explain only this step; for a batch worker, all its instances.")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def explain(task_uuid: str, name: str | None, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Explain why each unfinished step of a task does not run now, and what would change that.

    Steps with the same reason are listed together; reasons that need an operator come first.

    \b
    Examples:
      tasker task explain 0199c1f4-8a52
      tasker task explain 0199c1f4-8a52 --step process_payment

    \b
    Exit codes:
      0  nothing is left to run, or the task continues without intervention
      1  something needs an operator: a pause, a missing worker, a failure;
         or there is no such task or no database
      2  a mistake in the command
    """
    from tasker.cli.render.outcome import explanation_text

    async def read(app: Fleet) -> Explanation:
        task = await find_task(app.tasks, task_uuid)
        return await seen(app, show_sensitive).tasks.explain(task, name)

    explanation = run_on_fleet(place, read)
    text = explanation_text(explanation, screen_width(), place.arguments()) if form == "text" else ""
    print_as(form, explanation.to_dict(), lambda _: text)
    raise SystemExit(1 if explanation.needs_somebody else 0)


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
task.add_command(compensate)
task.add_command(record)
task.add_command(replay)
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
@click.option("--tenant", metavar="NAME", help="Filter by tenant.")
@click.option(
    "--outcome",
    type=click.Choice(["partial", "compensating", "compensated", "compensation_failed"]),
    help="Only tasks with this outcome.",
)
@click.option(
    "--waiting-for", type=click.Choice(["time", "event", "person", "task"]), help="Tasks with a step that waits."
)
@click.option("--correlation-id", metavar="UUID", help="Filter by correlation id.")
@click.option("--idempotency-key", metavar="KEY", help="Filter by idempotency key.")
@click.option("--fingerprint", metavar="F", help="Filter by failure fingerprint (see `tasker dlq groups`).")
@click.option("--field", metavar="'A.B = 7'", help="Filter by input field (see `tasker db index-inputs`).")
@click.option("--until", type=since, metavar="2h|7d|DATE", help="Only tasks created before then.")
@click.option("--open", is_flag=True, help="Only tasks that have not ended.")
@click.option("--oldest-first", is_flag=True, help="List the oldest first.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of rows.")
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
    from tasker.cli.render.task import list_text

    async def read(app: Fleet) -> Sequence[TaskSummary]:
        return await require_known_filter(app, await app.tasks.list(**which), which["namespace"], which["template"])

    rows = run_on_fleet(place, read)
    print_as(form, rows, lambda tasks: list_text(tasks, screen_width()))


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--traceback", is_flag=True, help="Print the whole traceback of each step's last failure.")
@click.option("--all", "every", is_flag=True, help="Show each instance of a batch worker, each failure, each result.")
@click.option("--at", type=since, metavar="2h|7d|DATE", help="Show the task as it was then.")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def show(
    task_uuid: str,
    traceback: bool,
    every: bool,
    at: datetime | None,
    show_sensitive: bool,
    form: str,
    place: FleetTarget,
) -> None:
    """Show a task: its state, its steps, its failures, its results.

    Many instances of a batch worker are one line, followed by the failed ones; --all shows each of them. On a terminal
    rows are shortened to its width. JSON always has every step in full.

    \b
    Examples:
      tasker task show 0199c1f4-8a52 --traceback
      tasker task show 0199c1f4-8a52 --at 2h
      tasker task show 0199c1f4-8a52 --at '2026-01-31 18:00' --format json
    """
    from tasker.cli.render.task import report_object, report_text

    async def read(app: Fleet) -> TaskReport:
        tasks = seen(app, show_sensitive).tasks
        task = await find_task(app.tasks, task_uuid)
        report = await tasks.report(task)
        if at is None:
            return report
        from tasker.views.as_of import report_at  # rarely needed

        return report_at(report, await tasks.history(task), at)

    report = run_on_fleet(place, read)
    render = partial(report_text, report, traceback=traceback, every=every, width=screen_width())
    print_as(form, report_object(report), lambda _: render())


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
        return await seen(app, show_sensitive).tasks.history(task)

    transitions = run_on_fleet(place, read)
    chosen = [row for row in transitions if name in (None, row.step)]
    if not chosen:
        names = ", ".join(dict.fromkeys(row.step for row in transitions if row.step))
        raise StepNotFound(f"task {task_uuid} has no step {name!r}", hint=f"expected one of: {names}")
    print_as(form, chosen, history_text)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--step", "name", metavar="NAME", help="Only the tasks that this step has started.")
@click.option("--after", metavar="TASK_UUID", help="Only the tasks after this one: the last one of the previous page.")
@click.option("--limit", type=click.IntRange(1, MOST_CHILDREN), default=50, show_default=True, help="Number of tasks.")
@FORMAT
@fleet_options
def children(task_uuid: str, name: str | None, after: str | None, limit: int, form: str, place: FleetTarget) -> None:
    """List the tasks that the steps of a task have started, and show who started the task.

    \b
    Examples:
      tasker task children 0199c1f4-8a52
      tasker task children 0199c1f4-8a52 --step ship_each --limit 500 --format json
    """
    from tasker.cli.render.children import family_text

    async def read(app: Fleet) -> TaskFamily:
        task = await find_task(app.tasks, task_uuid)
        last = None if after is None else await find_task(app.tasks, after)
        return await app.tasks.children(task, step=name, after=last, limit=limit)

    print_as(form, run_on_fleet(place, read), family_text)


@task.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--compensate", is_flag=True, help="Undo the effects of its complete steps before the task ends.")
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history.")
@FORMAT
@fleet_options
def cancel(task_uuid: str, compensate: bool, reason: str, form: str, place: FleetTarget) -> None:
    """Cancel a task and all its unfinished steps. Running handlers are asked to stop.

    Steps of `finally` run before the task ends; cancel it again to end them, too.
    """

    async def act(app: Fleet) -> dict[str, str]:
        task = await find_task(app.tasks, task_uuid)
        before = await app.tasks.cancel(task, reason=reason, actor=actor(), compensate=compensate)
        state, _ = await app.tasks.state(task)
        return {"task_uuid": task, "status": state, "previous_status": before}

    def text(done: dict[str, str]) -> str:
        was = f"{done['task_uuid']} (was {done['previous_status']})"
        if done["status"] == "cancelled":
            return f"cancelled {was}"
        return f"cancelling {was}; what runs before it ends: tasker task show {done['task_uuid']}"

    print_as(form, run_on_fleet(place, act, operates=True), text)
