"""`tasker task retry`: reset of all failed steps of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.next_commands import going_on
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import counted, names_text
from tasker.cli.task.lookup import find_task

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history.")
@FORMAT
@fleet_options
def retry(task_uuid: str, reason: str, form: str, place: FleetTarget) -> None:
    """Reset all failed steps of a task, with their full number of attempts, so that the task continues.

    All of them are reset in one transaction. A step that was running when its worker was lost and may run only once
    (on_worker_lost: fail) is skipped: reset it with `tasker task step reset` once you know that it may run again.

    \b
    Example:
      tasker task retry 0199c1f4-8a52 --reason "the provider is back"

    \b
    Exit codes:
      0  failed steps run again, or none had failed
      1  nothing runs again: every failed step was skipped, or the task was cancelled
    """

    async def act(app: Fleet) -> dict[str, Any]:
        found = await find_task(app.tasks, task_uuid)
        retried = await app.steps.retry(found, actor=actor(), reason=reason)
        state, final = await app.tasks.state(found)
        return {"task_uuid": found, "status": state, "finished": final, "reset": retried.reset, "left": retried.left}

    done = run_on_fleet(place, act, operates=True)
    print_as(form, done, lambda done: "\n".join(retry_summary(done, place)))
    raise SystemExit(1 if done["left"] and not done["reset"] else 0)


def retry_summary(done: dict[str, Any], place: FleetTarget) -> list[str]:
    """Return lines about the failed steps of a task and the next commands."""
    task, reset, left = done["task_uuid"], done["reset"], done["left"]
    lines = [f"{counted(len(reset), 'step')} {'runs' if len(reset) == 1 else 'run'} again: {names_text(reset)}"]
    if not reset:
        lines = ["nothing to retry: no step has failed; " * (not left) + f"the task is {done['status']}"]
    for name in left:
        lines.append(
            f"{name} was running when its worker was lost and may run only once (on_worker_lost: fail). To retry it:"
        )
        lines.append(f"  tasker task step reset {task} {name}{place.arguments()}")
    if reset:
        first, *commands = going_on(task, place.arguments(), here=place.runs_here)
        lines += [f"the task is {done['status']}. T{first[1:]}", *commands]
    return lines
