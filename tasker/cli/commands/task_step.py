"""`tasker task step`: repair of single steps."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands.task_steps import StepGroup, inputs, show
from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.outcome import resume_command, watch_command
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet


@click.group(cls=StepGroup)
def step() -> None:
    """Repair a step that failed or hangs, or show one: `tasker task step TASK_UUID STEP`.

    The action, its actor and its reason are recorded in the history.
    """


step.add_command(show)
step.add_command(inputs)


def _step_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add TASK_UUID, STEP, --reason and --format, which every command here has."""
    with_reason = click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history.")(
        FORMAT(command)
    )
    with_step: Callable[..., Any] = click.argument("name", metavar="STEP")(fleet_options(with_reason))
    return click.argument("task_uuid", metavar="TASK_UUID")(with_step)


@step.command()
@_step_command
def reset(name: str, reason: str, **which: Any) -> None:
    """Reset a step in error, so that it runs again with its full number of attempts.

    \b
    Example:
      tasker task step reset 0199c1f4-8a52 process_payment --reason "the provider is back"
    """
    _repair_step(name, lambda app, task: app.steps.reset(task, name, actor=actor(), reason=reason), **which)


@step.command()
@_step_command
def resolve(name: str, reason: str, **which: Any) -> None:
    """Resolve a step without a result; the steps that depend on it can run."""
    _repair_step(name, lambda app, task: app.steps.resolve(task, name, actor=actor(), reason=reason), **which)


@step.command()
@_step_command
@click.option("--result", required=True, metavar="JSON|@FILE|-", help="Result, a JSON object; - is standard input.")
def complete(name: str, result: str, reason: str, **which: Any) -> None:
    """Complete a step with a given result; the steps that depend on it can run and receive that result.

    \b
    Example:
      tasker task step complete 0199c1f4-8a52 process_payment --result '{"payment_id": "P-7"}'
    """
    from tasker.cli.run.input import read_object

    step_result = read_object(result, "--result", read_stdin=sys.stdin.read)
    _repair_step(
        name, lambda app, task: app.steps.complete(task, name, step_result, actor=actor(), reason=reason), **which
    )


def _repair_step(
    name: str, act: Callable[[Fleet, str], Awaitable[None]], *, task_uuid: str, form: str, place: FleetTarget
) -> None:
    async def find_and_act(app: Fleet) -> dict[str, Any]:
        task = await find_task(app.tasks, task_uuid)
        await act(app, task)
        state, final = await app.tasks.state(task)
        return {"task_uuid": task, "status": state, "finished": final, "step": name}

    print_as(form, run_on_fleet(place, find_and_act, operates=True), lambda done: _outcome_text(done, place))


def _outcome_text(done: dict[str, Any], place: FleetTarget) -> str:
    what, command = ("to resume it", resume_command) if place.runs_here else ("to watch it", watch_command)
    rest = "" if done["finished"] else f"; {what}: {command(done['task_uuid'], place.arguments())}"
    return f"done, the task is {done['status']}{rest}"
