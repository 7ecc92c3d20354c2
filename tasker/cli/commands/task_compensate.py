"""`tasker task compensate`: undo the effects of a task that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.outcome import going_on
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history.")
@FORMAT
@fleet_options
def compensate(task_uuid: str, reason: str, form: str, place: FleetTarget) -> None:
    """Undo the effects of the complete steps of a task that failed.

    Steps with `compensate` are undone in the reverse order of the graph. From then on no other step of the task can
    be reset; rerun the task to try again. An open task is compensated by `tasker task cancel --compensate`.

    \b
    Example:
      tasker task compensate 0199c1f4-8a52 --reason "the customer has cancelled"
    """

    async def act(app: Fleet) -> dict[str, str]:
        task = await find_task(app.tasks, task_uuid)
        await app.tasks.compensate(task, reason=reason, actor=actor())
        state, _ = await app.tasks.state(task)
        return {"task_uuid": task, "status": state}

    def text(done: dict[str, str]) -> str:
        commands = going_on(done["task_uuid"], place.arguments(), here=place.runs_here)
        return "\n".join([f"compensating {done['task_uuid']}", *commands])

    print_as(form, run_on_fleet(place, act, operates=True), text)
