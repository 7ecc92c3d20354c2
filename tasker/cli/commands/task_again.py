"""`tasker task retry` and `tasker task rerun`: let a task run again, or a copy of it from one of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.outcome import going_on
from tasker.cli.render.values import names_text
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet
from tasker.services.wording import counted

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet


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
    reused. Decisions and batches below the step are made anew. The old task is not changed, in any state;
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

        task = await find_task(app.tasks, task_uuid)
        first = step or where_to_begin(await app.tasks.report(task))
        changes = settings_by_path(settings)
        begun = await app.reruns.start(task, first, actor=actor(), reason=reason, changes=changes)
        return {"task_uuid": begun.task_uuid, "rerun_of": task, "steps": begun.steps, "reused": begun.reused}

    done = run_on_fleet(place, act, operates=True)
    print_as(form, done, lambda done: _rerun_text(done, place))


def _rerun_text(done: dict[str, Any], place: FleetTarget) -> str:
    task = done["task_uuid"]
    lines = [
        f"{task} begins with {counted(done['steps'], 'step')}, {done['reused']} of them reused from {done['rerun_of']}",
        *going_on(task, place.arguments(), here=place.runs_here),
    ]
    return "\n".join(lines)


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history.")
@FORMAT
@fleet_options
def retry(task_uuid: str, reason: str, form: str, place: FleetTarget) -> None:
    """Reset all failed steps of a task, with their full number of attempts, so that the task continues.

    All of them are reset in one transaction. A step that may run only once (effect: once, on_worker_lost: fail) and
    whose outcome is unknown is skipped: complete it with `tasker task step complete`, or reset it with `tasker task
    step reset` once you know that it may run again.

    \b
    Example:
      tasker task retry 0199c1f4-8a52 --reason "the provider is back"

    \b
    Exit codes:
      0  failed steps run again, or none had failed
      1  nothing runs again: every failed step was skipped, or the task was cancelled
    """

    async def act(app: Fleet) -> dict[str, Any]:
        task = await find_task(app.tasks, task_uuid)
        retried = await app.steps.retry(task, actor=actor(), reason=reason)
        state, final = await app.tasks.state(task)
        return {"task_uuid": task, "status": state, "finished": final, "reset": retried.reset, "left": retried.left}

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
            f"{name} may run only once, and the outcome of its attempt is unknown "
            "(effect: once, on_worker_lost: fail). To retry it:"
        )
        lines.append(f"  tasker task step reset {task} {name}{place.arguments()}")
    if reset:
        first, *commands = going_on(task, place.arguments(), here=place.runs_here)
        lines += [f"the task is {done['status']}. T{first[1:]}", *commands]
    return lines
