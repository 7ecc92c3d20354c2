"""`tasker task rerun`: a new task that reuses the results of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.next_commands import going_on
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import counted
from tasker.cli.task.lookup import find_task

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option(
    "--from",
    "step",
    metavar="STEP",
    help="First step to run again; defaults to the first failed step, else the first step.",
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Change one input value; repeatable.")
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history.")
@FORMAT
@fleet_options
def rerun(
    task_uuid: str, step: str | None, settings: tuple[str, ...], reason: str, form: str, place: FleetTarget
) -> None:
    """Rerun a task from one of its steps, as a new task, and print the new one's identifier.

    Without --from it starts at the first failed step, or at the first step if none has failed.

    That step runs again, with everything below it and everything that is not done; the results of all other steps are
    reused. Decisions and batches below the step are made anew. The old task is not changed, in whatever state it is;
    `task retry` continues failed steps of the same task instead.

    With --set the new task has another input. Steps whose results are reused do not see it.

    \b
    Examples:
      tasker task rerun 0199c1f4-8a52
      tasker task rerun 0199c1f4-8a52 --from charge_card
      tasker task rerun 0199c1f4-8a52 --from ship --set address.zip=10115 --reason "wrong address"

    \b
    Exit codes:
      0  the new task has begun
      1  it has not (no database, no such task)
      2  a mistake in the command or the input, or no such step
    """

    async def act(app: Fleet) -> dict[str, Any]:
        from tasker.cli.run.input import settings_by_path
        from tasker.services.operators.reruns import where_to_begin

        found = await find_task(app.tasks, task_uuid)
        first = step or where_to_begin(await app.tasks.report(found))
        changes = settings_by_path(settings)
        begun = await app.reruns.start(found, first, actor=actor(), reason=reason, changes=changes)
        return {"task_uuid": begun.task_uuid, "rerun_of": found, "steps": begun.steps, "reused": begun.reused}

    done = run_on_fleet(place, act, operates=True)
    print_as(form, done, lambda done: _told(done, place))


def _told(done: dict[str, Any], place: FleetTarget) -> str:
    task = done["task_uuid"]
    lines = [
        f"{task} begins with {counted(done['steps'], 'step')}, {done['reused']} of them reused from {done['rerun_of']}",
        *going_on(task, place.arguments(), here=place.runs_here),
    ]
    return "\n".join(lines)
