"""`tasker dlq`: tasks that need an operator."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.dead_letters import text
from tasker.cli.dead_letters.finding import found_entry
from tasker.cli.dead_letters.replay import replay, replays
from tasker.cli.dead_letters.retry import retry
from tasker.cli.guessing import GuessingGroup
from tasker.cli.place.naming import require_known_filter
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import screen_width
from tasker.cli.task.covering import SHOW_SENSITIVE, covered
from tasker.cli.task.lookup import find_task
from tasker.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasker.cli.place.fleet import Fleet
    from tasker.services.dead_letters.records import DeadLetter

STATUSES = click.Choice(["pending", "manually_resolved", "permanently_failed", "cancelled"])
REASONS = click.Choice(
    [
        "staleness_timeout",
        "max_retries_exceeded",
        "permanent_failure",
        "dependency_cycle_detected",
        "worker_unavailable",
        "manual_dlq",
    ]
)
LIMIT = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of rows."
)
METADATA = click.option(
    "--metadata", metavar="JSON|@FILE|-", help="JSON object, merged into the metadata of the entry."
)


@click.group(cls=GuessingGroup)
def dlq() -> None:
    """List, retry and close dead letters: tasks that failed or that make no progress.

    An entry is only a record. `tasker dlq retry` resets the failed steps and closes the entry. Or repair the task with
    `tasker task step`, then close the entry.
    """


@dlq.command("list")
@click.option("--status", type=STATUSES, help="Filter by status.")
@click.option("--reason", type=REASONS, help="Filter by reason.")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--template", metavar="NAME", help="Filter by template.")
@click.option("--fingerprint", metavar="F", help="Filter by failure fingerprint (see `tasker dlq groups`).")
@LIMIT
@click.option("--offset", type=click.IntRange(0), default=0, help="Number of rows to skip.")
@FORMAT
@fleet_options
def list_(form: str, place: FleetTarget, **which: Any) -> None:
    """List entries, newest first.

    \b
    Examples:
      tasker dlq list --status pending
      tasker dlq list --namespace payments --format json
    """

    async def read(app: Fleet) -> Sequence[DeadLetter]:
        return await require_known_filter(
            app, await app.dead_letters.list(**which), which["namespace"], which["template"]
        )

    print_as(form, run_on_fleet(place, read), _to_the_screen(text.list_text))


@dlq.command()
@click.argument("uuid", metavar="TASK_UUID|ENTRY")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def show(uuid: str, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show the newest entry of a task, or one entry, with a snapshot of the task."""

    async def read(app: Fleet) -> DeadLetter:
        entry = await found_entry(app, uuid)
        deleted = entry.current_state is None
        return entry if deleted else await covered(app, entry.task_uuid, entry, show_sensitive)

    print_as(form, run_on_fleet(place, read), text.entry_text)


def _to_the_screen(render: Callable[..., str]) -> Callable[[Any], str]:
    return partial(render, width=screen_width())


@dlq.command()
@FORMAT
@fleet_options
def stats(form: str, place: FleetTarget) -> None:
    """Count entries for each reason."""
    print_as(form, run_on_fleet(place, lambda app: app.dead_letters.stats()), text.stats_text)


@dlq.command()
@LIMIT
@FORMAT
@fleet_options
def queue(limit: int, form: str, place: FleetTarget) -> None:
    """Show the pending entries, the most urgent first."""
    print_as(
        form, run_on_fleet(place, lambda app: app.dead_letters.queue(limit=limit)), _to_the_screen(text.queue_text)
    )


@dlq.command()
@LIMIT
@FORMAT
@fleet_options
def staleness(limit: int, form: str, place: FleetTarget) -> None:
    """Show open tasks that are close to the staleness limit or beyond it."""
    print_as(form, run_on_fleet(place, lambda app: app.dead_letters.staleness(limit=limit)), text.staleness_text)


@dlq.command()
@LIMIT
@FORMAT
@fleet_options
def groups(limit: int, form: str, place: FleetTarget) -> None:
    """Group pending entries by failure: exception, location, and message without its variable parts."""
    print_as(form, run_on_fleet(place, lambda app: app.dead_letters.groups(limit=limit)), text.groups_text)


@dlq.command("open")
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--notes", metavar="TEXT", help="Suspected cause.")
@click.option("--reason", type=REASONS, default="manual_dlq", show_default=True, help="Reason.")
@METADATA
@FORMAT
@fleet_options
def open_(task_uuid: str, notes: str | None, reason: str, metadata: str | None, form: str, place: FleetTarget) -> None:
    """Create an entry for a task. The task itself continues."""

    async def act(app: Fleet) -> DeadLetter:
        task = await find_task(app.tasks, task_uuid)
        more = {"notes": notes, "reason": reason, "metadata": _object(metadata)}
        return await app.dead_letters.open(task, actor=actor(), **more)

    print_as(form, run_on_fleet(place, act, operates=True), text.changed_text)


@dlq.command()
@click.argument("entry", metavar="ENTRY|TASK_UUID")
@click.option("--status", type=STATUSES, help="Status of the investigation.")
@click.option("--notes", metavar="TEXT", help="Findings.")
@click.option("--by", metavar="NAME", help="Person who closes it; defaults to your user name if --status is given.")
@METADATA
@FORMAT
@fleet_options
def update(
    entry: str,
    status: str | None,
    notes: str | None,
    by: str | None,
    metadata: str | None,
    form: str,
    place: FleetTarget,
) -> None:
    """Add notes to an entry, or to the newest one of a task, or close it. The task is not changed.

    \b
    Examples:
      tasker dlq update ENTRY --notes "waiting for the provider"
      tasker dlq update ENTRY --status manually_resolved --notes "order corrected, step reset"
    """
    who = by or (actor() if status not in (None, "pending") else None)
    more = {"status": status, "notes": notes, "by": who, "metadata": _object(metadata)}
    if all(each is None for each in more.values()):
        raise UsageError("nothing to update", hint="give --status, --notes, --by or --metadata")

    async def act(app: Fleet) -> DeadLetter:
        return await app.dead_letters.update((await found_entry(app, entry)).dlq_entry_uuid, **more)

    print_as(form, run_on_fleet(place, act, operates=True), text.changed_text)


def _object(metadata: str | None) -> Any:
    from tasker.cli.run.input import read_object

    return None if metadata is None else read_object(metadata, "--metadata", read_stdin=sys.stdin.read)


dlq.add_command(retry)
dlq.add_command(replay)
dlq.add_command(replays)
