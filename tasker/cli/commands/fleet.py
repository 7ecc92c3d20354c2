"""`tasker doctor`, `actions`, `pause` and `resume`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands.task_watch import since
from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.values import date_time, screen_width, table, wrapped
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet
from tasker.services.wording import counted

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.services.audit import RecordedAction
    from tasker.services.fleet.doctor import DoctorFinding
    from tasker.services.operators.pauses import PauseTarget
    from tasker.views.task_lists import Pause, PauseList

HEADINGS = ("WHEN", "WHO", "KNOWN BY", "WHAT", "OF", "STATUS", "FROM", "NOT DONE BECAUSE")


@click.command()
@click.option("--actor", metavar="NAME", help="Filter by actor.")
@click.option("--since", type=since, metavar="2h|7d|DATE", help="Only actions since then.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def actions(actor: str | None, since: datetime | None, limit: int, form: str, place: FleetTarget) -> None:
    """List operator actions, made over HTTP or by commands on the database, newest first.

    The status is the response status of an HTTP request, or the exit code of a command; - if unknown. An action is
    recorded in the same transaction as its effect; a refused one is recorded with the reason.

    \b
    Examples:
      tasker actions --since 2h
      tasker actions --actor ada --format json
    """
    operator_actions = run_on_fleet(place, lambda app: app.operator_log.list(actor=actor, since=since, limit=limit))
    print_as(form, operator_actions, _text)


def _text(actions: Sequence[RecordedAction]) -> str:
    return table(HEADINGS, [_row(action) for action in actions]) if actions else "no operator actions"


def _row(action: RecordedAction) -> tuple[str, ...]:
    status = "-" if action.status is None else str(action.status)
    moment, address = date_time(action.requested_at), action.address or "-"
    return (
        moment,
        action.actor,
        action.proof,
        action.endpoint,
        action.path or "-",
        status,
        address,
        action.refusal or "",
    )


SOUND = {
    "versions": "all processes run this release",
    "connections": "the database server has enough for the fleet",
    "settings": "the settings of all processes are compatible",
    "clocks": "in sync with the database",
    "rows": "open tasks and a sample of the finished ones are consistent",
    "queues": "messages and workers match the rows",
}


@click.command()
@FORMAT
@fleet_options
def doctor(form: str, place: FleetTarget) -> None:
    """Diagnose the fleet: releases, connections, settings, clocks, rows, queues. Changes nothing.

    Every finding has a remedy. A finding marked `!` is repaired automatically or is only for information. The check
    reads the 20,000 oldest open tasks and a sample of the finished ones; `tasker db check` reads everything.

    \b
    Exit codes:
      0  nothing is wrong
      1  something is, or the database cannot be reached
    """
    from tasker.services.fleet.doctor import to_dict

    findings = run_on_fleet(place, lambda app: app.doctor.findings())
    print_as(form, to_dict(findings), lambda _: "\n".join(_lines(findings, screen_width())))
    raise SystemExit(1 if any(finding.wrong for finding in findings) else 0)


def _lines(findings: Sequence[DoctorFinding], width: int | None) -> Iterator[str]:
    for check, sound in SOUND.items():
        mine = [candidate for candidate in findings if candidate.check == check]
        if not mine:
            yield f"{click.style('✔', fg='green')} {check:<12} {sound}"
        for finding in mine:
            mark, colour = ("✖", "red") if finding.wrong else ("!", "yellow")
            yield f"{click.style(mark, fg=colour)} {check:<12} {wrapped(finding.what, 15, width).lstrip()}"
            yield from (click.style(f"{'':15}{example}", dim=True) for example in finding.examples)
            yield wrapped(f"→ {finding.fix}", 15, width)


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
    from tasker.services.operators.pauses import PauseTarget

    if task := rest.get("task"):
        rest["task"] = await find_task(app.tasks, task)
    return PauseTarget.of(namespace, **rest)


def _list_text(pauses: PauseList) -> str:

    if not pauses.pauses:
        return "no pauses"
    rows = [
        (_name(entry), _held(entry.held), entry.actor, entry.paused_at[:19].replace("T", " "), entry.reason)
        for entry in pauses.pauses
    ]
    return table(("PAUSED", "HELD", "BY", "SINCE", "REASON"), rows)


def _held(held: int | None) -> str:
    return "-" if held is None else str(held)


def _name(entry: Pause) -> str:
    if entry.queue:
        return f"queue {entry.queue}"
    path = "/".join(filter(None, (entry.namespace, entry.template, entry.step)))
    return f"{path} task {entry.task}" if entry.task else path
