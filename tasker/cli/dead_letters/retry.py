"""`tasker dlq retry`: reset of the failed steps of a task that closes its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.dead_letters.finding import found_entry
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.task.retry import retry_summary

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet


@click.command()
@click.argument("entry", metavar="ENTRY|TASK_UUID")
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the history and with the entry.")
@FORMAT
@fleet_options
def retry(entry: str, reason: str, form: str, place: FleetTarget) -> None:
    """Reset all failed steps of the entry's task and close the entry (or the newest one of a task), all or none.

    `tasker task retry` does the same but leaves the entry pending. If the task fails again it gets a new entry. If no
    step can run again, the entry stays open.

    \b
    Example:
      tasker dlq retry 0199c1f4-8a52 --reason "the provider is back"

    \b
    Exit codes:
      0  failed steps run again, or none had failed
      1  nothing runs again: every failed step was skipped, or the task was cancelled
    """

    async def act(app: Fleet) -> dict[str, Any]:
        found = (await found_entry(app, entry)).dlq_entry_uuid
        retried = await app.dead_letters.retry(found, actor=actor(), reason=reason)
        now = await app.dead_letters.entry(found)
        names = {"dlq_entry_uuid": found, "task_uuid": now.task_uuid, "resolution_status": now.resolution_status}
        return {**names, "status": now.current_state, "reset": retried.reset, "left": retried.left}

    done = run_on_fleet(place, act, operates=True)
    print_as(form, done, lambda done: "\n".join([_entry_told(done), *retry_summary(done, place)]))
    raise SystemExit(1 if done["left"] and not done["reset"] else 0)


def _entry_told(done: dict[str, Any]) -> str:
    return f"entry {done['dlq_entry_uuid']} is {done['resolution_status']}"
