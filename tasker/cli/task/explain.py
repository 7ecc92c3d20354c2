"""`tasker task explain`: reasons why the steps of a task do not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import screen_width
from tasker.cli.task.covering import SHOW_SENSITIVE, covered
from tasker.cli.task.lookup import find_task

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.services.explain.explanation import Explanation


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
    from tasker.cli.render.explanation import explanation_text

    async def read(app: Fleet) -> Explanation:
        task = await find_task(app.tasks, task_uuid)
        return await covered(app, task, await app.tasks.explain(task, name), show_sensitive)

    found = run_on_fleet(place, read)
    text = explanation_text(found, screen_width(), place.arguments()) if form == "text" else ""
    print_as(form, found.to_dict(), lambda _: text)
    raise SystemExit(1 if found.needs_somebody else 0)
