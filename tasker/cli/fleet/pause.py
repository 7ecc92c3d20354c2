"""`tasker pause` and `tasker resume`: pauses of namespaces, templates, steps, tasks and queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import counted
from tasker.cli.task.lookup import find_task

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.services.listings import Pause, PauseList
    from tasker.services.pauses import PauseTarget

LIST = "list"


def _target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the target, and `--reason`."""
    for option in (
        click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the pause log."),
        click.option("--queue", metavar="NAME", help="Pause or resume a queue of the orchestration."),
        click.option("--step", metavar="NS/NAME/STEP", help="Pause or resume a step of a template."),
        click.option("--task", metavar="UUID", help="Pause or resume a task."),
        click.option("--template", metavar="NS/NAME", help="Pause or resume a template, in every version."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("namespace", required=False)
@_target_options
@FORMAT
@fleet_options
def pause(namespace: str | None, reason: str, form: str, place: FleetTarget, **target: str | None) -> None:
    """Pause NAMESPACE, or one template, step or task, until `tasker resume`.

    Running steps continue. Steps that are or become ready wait, without using an attempt. `tasker pause list` shows
    what is paused, by whom, why, and how many ready steps wait.

    With --queue orchestrators stop consuming one of their queues (by default orchestration_step_results,
    orchestration_task_requests, orchestration_task_finalizations).

    \b
    Examples:
      tasker pause payments --reason "the provider is down"
      tasker pause --template shop/order --reason "wrong price list"
      tasker pause --queue orchestration_task_requests
      tasker pause list
    """
    if namespace == LIST and not any(target.values()):
        print_as(form, run_on_fleet(place, lambda app: app.pauses.list()), _list_text)
        return

    async def act(app: Fleet) -> dict[str, Any]:
        named = await _target(app, namespace, **target)
        return {"target": str(named), "began": await app.pauses.pause(named, actor=actor(), reason=reason)}

    print_as(form, run_on_fleet(place, act, operates=True), _paused_text)


def _paused_text(done: dict[str, Any]) -> str:
    return f"paused {done['target']}" if done["began"] else f"{done['target']} is already paused; see tasker pause list"


@click.command()
@click.argument("namespace", required=False)
@_target_options
@FORMAT
@fleet_options
def resume(namespace: str | None, reason: str, form: str, place: FleetTarget, **target: str | None) -> None:
    """Resume a paused target, named as in `tasker pause`.

    \b
    Examples:
      tasker resume payments
      tasker resume --template shop/order
    """

    async def act(app: Fleet) -> dict[str, Any]:
        named = await _target(app, namespace, **target)
        held = await app.pauses.resume(named, actor=actor(), reason=reason)
        return {"target": str(named), "ended": held is not None, "messages" if named.queue else "steps": held or 0}

    print_as(form, run_on_fleet(place, act, operates=True), _resumed_text)


def _resumed_text(done: dict[str, Any]) -> str:
    if not done["ended"]:
        return f"{done['target']} was not paused; see tasker pause list"
    if "messages" in done:
        return f"resumed {done['target']}: {counted(done['messages'], 'message')} in the queue"
    return f"resumed {done['target']}: {counted(done['steps'], 'step')} can start now"


async def _target(app: Fleet, namespace: str | None, **rest: str | None) -> PauseTarget:
    from tasker.services.pauses import PauseTarget

    if task := rest.get("task"):
        rest["task"] = await find_task(app.tasks, task)
    return PauseTarget.of(namespace, **rest)


def _list_text(found: PauseList) -> str:
    from tasker.cli.render.table import table

    if not found.pauses:
        return "no pauses"
    rows = [
        (_name(entry), _held(entry.held), entry.actor, entry.paused_at[:19].replace("T", " "), entry.reason)
        for entry in found.pauses
    ]
    return table(("PAUSED", "HELD", "BY", "SINCE", "REASON"), rows)


def _held(held: int | None) -> str:
    return "-" if held is None else str(held)


def _name(entry: Pause) -> str:
    if entry.queue:
        return f"queue {entry.queue}"
    path = "/".join(filter(None, (entry.namespace, entry.template, entry.step)))
    return f"{path} task {entry.task}" if entry.task else path
