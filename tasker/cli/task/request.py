"""`tasker task request` and `tasker task refused`: tasks requested through the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, configured_for, print_as
from tasker.cli.options import DatabaseOption
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import DatabaseTarget, FleetTarget
from tasker.cli.render.values import date_time, one_line
from tasker.cli.task.options import task_input, task_options

if TYPE_CHECKING:
    from tasker.app.requesting import TaskRequester
    from tasker.services.listings import RefusedMessage


@click.command()
@click.argument("target", metavar="NAMESPACE/NAME[:VERSION]")
@task_options
@click.option("--task", "task_uuid", metavar="UUID", help="Task id of an earlier request whose outcome is unknown.")
@FORMAT
@fleet_options
def request(
    target: str, given: str | None, settings: tuple[str, ...], form: str, place: FleetTarget, **options: Any
) -> None:
    """Request a task from an orchestrator, through the broker alone, and print its future identifier.

    For machines that reach the broker but not the database. The template must be registered. Requests that the
    orchestrator refuses are shown by `tasker task refused`. The broker is that of the configuration, or of --backend;
    with --url or --profile it is the server's.

    \b
    Example:
      RABBITMQ_URL=amqp://broker/ tasker task request shop/checkout --set order=7 --backend rabbitmq
    """
    values = task_input(given, settings)
    if isinstance(place, DatabaseTarget):
        task_uuid = asyncio.run(_ask(_requester(place.database), target, values, options))
    else:
        task_uuid = run_on_fleet(place, lambda fleet: fleet.requests.request(target, values, **options))
    print_as(form, {"task_uuid": task_uuid, "status": "requested"}, lambda row: row["task_uuid"])


def _requester(database: DatabaseOption) -> TaskRequester:
    from tasker.app.requesting import TaskRequester

    return TaskRequester(configuration=configured_for(database))


async def _ask(requester: TaskRequester, target: str, values: dict[str, Any], options: dict[str, Any]) -> str:
    async with requester:
        return await requester.request(target, values, **options)


@click.command()
@click.option("--queue", metavar="NAME", help="Filter by queue.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def refused(form: str, place: FleetTarget, **which: Any) -> None:
    """List refused messages, newest first: task requests and wake-up messages, with the reason."""
    print_as(form, run_on_fleet(place, lambda app: app.tasks.refused(**which)), _refused_text)


def _refused_text(rows: Sequence[RefusedMessage]) -> str:
    from tasker.cli.render.table import table

    if not rows:
        return "no refused messages"
    lines = [(date_time(row.at), row.queue, one_line(row.reason), one_line(_message(row), 80)) for row in rows]
    return table(("at", "queue", "reason", "message"), lines)


def _message(row: RefusedMessage) -> str:
    message = row.message or {}
    return str(message.get("raw", message) if isinstance(message, dict) else message)
