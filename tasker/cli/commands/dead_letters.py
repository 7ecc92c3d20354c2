"""`tasker dlq`: list, show, retry and resolve dead letters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands import dead_letter_text
from tasker.cli.commands.replays import replay, replays
from tasker.cli.commands.task_again import retry_summary
from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.covering import SHOW_SENSITIVE, seen
from tasker.cli.options import bounded_option, limit_option
from tasker.cli.render.values import screen_width
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, find_task, fleet_options, require_known_filter, run_on_fleet
from tasker.errors import UsageError
from tasker.operations.dead_letters import DeadLetterOperations
from tasker.views.dead_letters import REASONS, STATUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasker.cli.remote.fleet import Fleet
    from tasker.views.dead_letters import DeadLetter


async def found_entry(app: Fleet, uuid: str) -> DeadLetter:
    """Return the entry, or the newest one of that task. Raises `DeadLetterNotFound`, `UsageError`."""
    from tasker.errors import DeadLetterNotFound, TaskNotFound

    try:
        return await app.dead_letters.entry(uuid)
    except (DeadLetterNotFound, UsageError) as missing:
        try:
            task = await find_task(app.tasks, uuid)
        except TaskNotFound:
            raise missing from None
        return await app.dead_letters.of_task(task)


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
        entry_uuid = (await found_entry(app, entry)).dlq_entry_uuid
        retried = await app.dead_letters.retry(entry_uuid, actor=actor(), reason=reason)
        now = await app.dead_letters.entry(entry_uuid)
        names = {"dlq_entry_uuid": entry_uuid, "task_uuid": now.task_uuid, "resolution_status": now.resolution_status}
        return {**names, "status": now.current_state, "reset": retried.reset, "left": retried.left}

    done = run_on_fleet(place, act, operates=True)
    print_as(form, done, lambda done: "\n".join([_entry_text(done), *retry_summary(done, place)]))
    raise SystemExit(1 if done["left"] and not done["reset"] else 0)


def _entry_text(done: dict[str, Any]) -> str:
    return f"entry {done['dlq_entry_uuid']} is {done['resolution_status']}"


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
@click.option("--status", type=click.Choice(STATUSES), help="Filter by status.")
@click.option("--reason", type=click.Choice(REASONS), help="Filter by reason.")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--template", metavar="NAME", help="Filter by template.")
@click.option("--fingerprint", metavar="F", help="Filter by failure fingerprint (see `tasker dlq groups`).")
@limit_option(DeadLetterOperations.list_dead_letters)
@bounded_option(DeadLetterOperations.list_dead_letters, "offset", help="Number of rows to skip.")
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

    print_as(form, run_on_fleet(place, read), _to_the_screen(dead_letter_text.list_text))


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
        values = seen(app, show_sensitive).sensitive_values
        return entry if deleted else await values.redacted(entry.task_uuid, entry)

    print_as(form, run_on_fleet(place, read), dead_letter_text.entry_text)


def _to_the_screen(render: Callable[..., str]) -> Callable[[Any], str]:
    return partial(render, width=screen_width())


@dlq.command()
@FORMAT
@fleet_options
def stats(form: str, place: FleetTarget) -> None:
    """Count entries for each reason."""
    print_as(form, run_on_fleet(place, lambda app: app.dead_letters.stats()), dead_letter_text.stats_text)


@dlq.command()
@limit_option(DeadLetterOperations.investigation_queue)
@FORMAT
@fleet_options
def queue(limit: int, form: str, place: FleetTarget) -> None:
    """Show the pending entries, the most urgent first."""
    print_as(
        form,
        run_on_fleet(place, lambda app: app.dead_letters.queue(limit=limit)),
        _to_the_screen(dead_letter_text.queue_text),
    )


@dlq.command()
@limit_option(DeadLetterOperations.staleness)
@FORMAT
@fleet_options
def staleness(limit: int, form: str, place: FleetTarget) -> None:
    """Show open tasks that are close to the staleness limit or beyond it."""
    print_as(
        form, run_on_fleet(place, lambda app: app.dead_letters.staleness(limit=limit)), dead_letter_text.staleness_text
    )


@dlq.command()
@limit_option(DeadLetterOperations.dead_letter_groups)
@FORMAT
@fleet_options
def groups(limit: int, form: str, place: FleetTarget) -> None:
    """Group pending entries by failure: exception, location, and message without its variable parts."""
    print_as(form, run_on_fleet(place, lambda app: app.dead_letters.groups(limit=limit)), dead_letter_text.groups_text)


@dlq.command("open")
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--notes", metavar="TEXT", help="Suspected cause.")
@click.option("--reason", type=click.Choice(REASONS), default="manual_dlq", show_default=True, help="Reason.")
@METADATA
@FORMAT
@fleet_options
def open_(task_uuid: str, notes: str | None, reason: str, metadata: str | None, form: str, place: FleetTarget) -> None:
    """Create an entry for a task. The task itself continues."""

    async def act(app: Fleet) -> DeadLetter:
        task = await find_task(app.tasks, task_uuid)
        more = {"notes": notes, "reason": reason, "metadata": _object(metadata)}
        return await app.dead_letters.open(task, actor=actor(), **more)

    print_as(form, run_on_fleet(place, act, operates=True), dead_letter_text.changed_text)


@dlq.command()
@click.argument("entry", metavar="ENTRY|TASK_UUID")
@click.option("--status", type=click.Choice(STATUSES), help="Status of the investigation.")
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
    more = {"status": status, "notes": notes, "resolved_by": who, "metadata": _object(metadata)}
    if all(value is None for value in more.values()):
        raise UsageError("nothing to update", hint="give --status, --notes, --by or --metadata")

    async def act(app: Fleet) -> DeadLetter:
        return await app.dead_letters.update((await found_entry(app, entry)).dlq_entry_uuid, **more)

    print_as(form, run_on_fleet(place, act, operates=True), dead_letter_text.changed_text)


def _object(metadata: str | None) -> Any:
    from tasker.cli.run.input import read_object

    return None if metadata is None else read_object(metadata, "--metadata", read_stdin=sys.stdin.read)


dlq.add_command(retry)
dlq.add_command(replay)
dlq.add_command(replays)
