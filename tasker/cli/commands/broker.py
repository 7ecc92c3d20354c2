"""`tasker broker`: the messaging backend compared with the database, and migration to another backend."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from tasker.cli.commands.process_options import no_config_option
from tasker.cli.connection import FORMAT, configured_for, format_option, plain, print_as, require_database
from tasker.cli.options import DatabaseOption, database_options
from tasker.cli.render.values import echo
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import DatabaseTarget, FleetTarget, fleet_options
from tasker.dataclasses import dataclass
from tasker.errors import DatabaseError, MessagingError, ServerError, UsageError
from tasker.services.wording import counted, duration

if TYPE_CHECKING:
    from tasker.app.configured import Configured
    from tasker.views.fleet import BrokerReport, QueueInfo

Reports: TypeAlias = "AbstractAsyncContextManager[Callable[[], Awaitable[BrokerReport]]]"
WATCH_SECONDS = 2.0
COLUMNS = ("QUEUE", "MESSAGES", "IN FLIGHT", "OLDEST", "CONSUMERS", "READERS", "IN DATABASE")


@dataclass(frozen=True, slots=True)
class Migrated:
    """Result of `tasker broker migrate`. `action`: `would_send`, `sent` or `drained`.

    `steps` counts messages by namespace, `results` parked results; `still_on_it` lists processes on the old backend;
    `removed` counts messages by queue.
    """

    action: str
    left: str
    to: str
    steps: Mapping[str, int] = field(default_factory=dict)
    results: int = 0
    still_on_it: Sequence[str] = ()
    removed: Mapping[str, int] = field(default_factory=dict)


@click.group(cls=GuessingGroup)
def broker() -> None:
    """Inspect the messaging backend, and migrate to another one.

    Its settings come from the configuration file (TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT), if there is one.
    """


@broker.command()
@format_option("table", "json")
@click.option("--watch", is_flag=True, help=f"Refresh every {WATCH_SECONDS:g} seconds until Ctrl-C.")
@no_config_option
@fleet_options
def status(place: FleetTarget, no_config: bool, form: str, watch: bool) -> None:
    """Show every queue: messages, in flight, age of the oldest, consumers, and the number expected by the database.

    READERS are running processes that consume the queue. A dash is a value that the backend does not report.

    \b
    Examples:
      tasker broker status
      tasker broker status --backend rabbitmq --format json
    """
    asyncio.run(_follow(_reports(place, no_config), form, watch))


@asynccontextmanager
async def _reports(place: FleetTarget, no_config: bool) -> AsyncIterator[Callable[[], Awaitable[BrokerReport]]]:
    """Yield a function that makes a report, over connections that stay open."""
    if not isinstance(place, DatabaseTarget):
        if no_config:
            raise UsageError("--no-config applies to a database; a server has its own configuration")
        async with place.fleet() as fleet:
            yield fleet.queues.report
        return
    from tasker.app.services import provider
    from tasker.services.fleet.brokers import broker_report

    chosen = _configuration(place.database, no_config)
    async with provider(chosen, chosen.backend, place.database.data_dir) as (resources, connection):
        yield partial(broker_report, resources.messaging, connection)


async def _follow(reports: Reports, form: str, watch: bool) -> None:
    """Show the report once, or repeatedly until interrupted; in that case errors are printed and retried."""
    async with reports as report:
        while True:
            try:
                _show(await report(), form)
            except (DatabaseError, MessagingError, ServerError) as error:
                if not watch:
                    raise
                echo(f"{_time()}  {error.message}")
            if not watch:
                return
            await asyncio.sleep(WATCH_SECONDS)


def _show(report: BrokerReport, form: str) -> None:
    from tasker.views.fleet import BrokerReport
    from tasker.views.model import encode

    echo(json.dumps(encode(BrokerReport, report), default=plain) if form == "json" else f"{_time()}  {_text(report)}")


def _text(report: BrokerReport) -> str:
    from tasker.cli.render.values import table

    able = ", ".join(name for name, has in report.capabilities.items() if has) or "no optional features"
    users = (
        ", ".join(f"{number} on {name or 'an unknown provider'}" for name, number in report.processes.items()) or "none"
    )
    queues = table(COLUMNS, [_row(queue) for queue in report.queues]) if report.queues else "no queues yet"
    lines = [
        f"{report.provider} {'answers' if report.healthy else 'does not respond'}; it has {able}",
        f"running processes: {users}",
        queues,
        *report.remarks,
    ]
    return "\n".join(lines)


def _row(queue: QueueInfo) -> tuple[str, ...]:
    if not queue.exists:
        missing = "no queue" if queue.in_database else "0"
        return (queue.queue, missing, "-", "-", "-", str(queue.readers), _number(queue.in_database))
    depth = f"{queue.depth} to {queue.depth + queue.unseen}" if queue.unseen else str(queue.depth)
    oldest = "-" if queue.oldest_seconds is None else duration(queue.oldest_seconds * 1000)
    numbers = (queue.consumers, queue.readers, queue.in_database)
    return (queue.queue, depth, _number(queue.in_flight), oldest, *map(_number, numbers))


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _time() -> str:
    return time.strftime("%H:%M:%S")


@broker.command()
@click.option("--to", required=True, metavar="NAME", help="Provider to migrate to.")
@click.option(
    "--from",
    "old",
    metavar="NAME",
    help="Provider to migrate from.  [default: the configured one, else the last one used]",
)
@click.option(
    "--drain", is_flag=True, help="Remove the queues of the old provider; the last step, once no process uses it."
)
@click.option("--dry-run", is_flag=True, help="Print the plan; change nothing.")
@no_config_option
@FORMAT
@database_options
def migrate(
    database: DatabaseOption, no_config: bool, form: str, to: str, old: str | None, drain: bool, dry_run: bool
) -> None:
    """Migrate to another messaging backend while tasks are in flight.

    Without --drain every waiting step gets a message on the new backend, derived from the database; the old one is not
    changed. Then restart every process with the new backend, and run the command again with --drain. Every part may be
    repeated: messages are only wake-ups, the rows of the steps decide which process runs them.

    \b
    Example:
      tasker broker migrate --to rabbitmq
      tasker broker migrate --to rabbitmq --drain
    """
    if drain and dry_run:
        raise UsageError("--drain and --dry-run exclude each other", hint="give only one of them")
    chosen = _configuration(database, no_config)
    done = asyncio.run(_migrate(chosen, database.data_dir, to, old, drain=drain, dry_run=dry_run))
    print_as(form, done, lambda _: "\n".join(_migrated_lines(done, database.arguments())))


async def _migrate(
    chosen: Configured, data_dir: Path | None, to: str, old: str | None, *, drain: bool, dry_run: bool
) -> Migrated:
    from tasker.app.services import migration, provider

    async with migration(chosen, to, data_dir) as moving:
        old = await moving.leaves(old, chosen.backend)
        if drain:
            async with provider(chosen, old, data_dir) as (resources, _):
                removed = await moving.drain(resources.messaging)
            return Migrated("drained", old, to, removed={queue: stats.depth for queue, stats in removed.items()})
        waiting = await (moving.waiting() if dry_run else moving.send())
        steps = {name: number for name, number in sorted(waiting.steps.items()) if number}
        running = [str(process) for process in await moving.processes_on(old)]
        return Migrated("would_send" if dry_run else "sent", old, to, steps, waiting.results, running)


def _migrated_lines(done: Migrated, options: str) -> Iterator[str]:
    if done.action == "drained":
        for queue, depth in done.removed.items():
            yield f"removed from {done.left}: {queue} ({counted(depth, 'message')})"
        yield f"no queues are left on {done.left}; all waiting work has a message on {done.to}"
        return
    yield f"{'sent' if done.action == 'sent' else 'would be sent'} to {done.to}: {_waiting(done)}"
    yield f"still on {done.left}: {', '.join(done.still_on_it) or 'no running process'}"
    if done.action == "sent":
        yield f"Next: restart every process with the backend {done.to} (also those that only submit), then run"
        yield f"  tasker broker migrate --from {done.left} --to {done.to} --drain{options}"


def _waiting(done: Migrated) -> str:
    by_namespace = ", ".join(f"{name} {number}" for name, number in done.steps.items())
    steps = counted(sum(done.steps.values()), "hint") + (f" ({by_namespace})" if by_namespace else "")
    return f"{steps}, {counted(done.results, 'parked result')}"


def _configuration(database: DatabaseOption, no_config: bool) -> Configured:
    chosen = configured_for(database, no_config=no_config)
    require_database(chosen.database_url, database.data_dir)
    return chosen
