"""`tasker db`: upgrade, check, prune, sizes, roles and the index of inputs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import click

from tasker.cli.connection import (
    FORMAT,
    configured_for,
    connected,
    database_at,
    known_configuration,
    print_as,
    require_database,
)
from tasker.cli.options import DatabaseOption, NumberRange, database_options
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import require_known_filter
from tasker.db import migrate
from tasker.db.database import describe_url, ensure_database
from tasker.db.roles import PREFIX, Role, Roles, create_input_index, drop_input_index
from tasker.db.startup_wait import with_database
from tasker.errors import UsageError
from tasker.settings.addresses import DEFAULT_BACKEND

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.app.configured import Configured
    from tasker.services.database import CostlyStatements, Pruned, Sizes
    from tasker.services.fleet.doctor import CheckFinding
    from tasker.settings.retention import RetentionRule


@click.command("index-inputs")
@click.option("--drop", is_flag=True, help="Remove the index.")
@FORMAT
@database_options
def index_inputs(database: DatabaseOption, form: str, drop: bool) -> None:
    """Index task inputs, so that a search by an input field covers all tasks, not only the newest 20,000.

    `tasker task list --field 'order.id = 7'` and the search of the web UI use it. The index is built concurrently with
    running work, may take minutes on a large database, and adds a cost to each submission that grows with the size of
    the input.
    """
    chosen = configured_for(database)
    require_database(chosen.database_url, database.data_dir)
    with database_at(chosen, database.data_dir) as url:
        changed = (drop_input_index if drop else create_input_index)(url)
    print_as(form, {"indexed": not drop, "changed": changed}, lambda _: _index_text(drop, changed))


def _index_text(drop: bool, changed: bool) -> str:
    if drop:
        return "removed the index of inputs" if changed else "there is no index of inputs"
    return "created the index of inputs" if changed else "inputs are already indexed"


_DAYS = NumberRange(0, 36_500)
_COUNT = click.IntRange(1)


@click.command()
@click.option("--completed-days", type=_DAYS, help="Delete completed tasks older than this.")
@click.option("--failed-days", type=_DAYS, help="Delete failed and cancelled tasks older than this.")
@click.option(
    "--completed-count",
    type=_COUNT,
    help="Number of completed tasks to keep per template.",
)
@click.option("--failed-count", type=_COUNT, help="Number of failed or cancelled tasks to keep per template.")
@click.option(
    "--pending-days", type=_DAYS, help="Keep tasks with a pending dead letter for this many days; default: forever."
)
@click.option("--namespace", help="Only tasks of this namespace.")
@click.option("--template", help="Only tasks of this template, every version.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted; delete nothing.")
@FORMAT
@database_options
def prune(database: DatabaseOption, form: str, dry_run: bool, **limits: float | str | None) -> None:
    """Delete finished tasks with their data: steps, results, history, closed dead letters.

    Tasks that ended within the last hour are kept, and so are tasks with a pending dead letter (see --pending-days) or
    in a replay. Templates are kept.

    Without any limit, --namespace or --template those of [common.retention] apply. Tasks are deleted in small
    transactions: after an interruption, run the command again.
    """
    rules, named = _rules(database, limits), cast("dict[str, str | None]", limits).get

    async def act(app: App) -> Sequence[Pruned]:
        pruned = await (app.retention.prunable(rules) if dry_run else app.retention.prune(rules))
        return await require_known_filter(app, pruned, named("namespace"), named("template"))

    print_as(form, connected(database, act, operates=not dry_run), lambda pruned: _prune_text(pruned, dry_run))


def _rules(database: DatabaseOption, limits: Mapping[str, float | str | None]) -> Sequence[RetentionRule]:
    """Return the rule of the options, or the configured rules if no option is set."""
    from tasker.settings.retention import RetentionRule, retention_rules

    rule = RetentionRule(**limits)  # type: ignore[arg-type]  # the options are named as its fields
    rules = [rule] if rule != RetentionRule() else retention_rules(configured_for(database).sweeps.retention)
    if not any(retention_rule.limits for retention_rule in rules):
        hint = "give --completed-days, --failed-days or a count, or configure [common.retention]"
        raise UsageError("no limit is given or configured", hint=hint)
    return rules


def _prune_text(pruned: Sequence[Pruned], dry_run: bool) -> str:
    from tasker.cli.render.values import table

    if not pruned:
        return "Nothing to delete. (Tasks that ended within the last hour are always kept.)"
    rows = [
        (
            f"{row.namespace}/{row.template} {row.version}",
            "failed" if row.failed else "complete",
            row.before[:19],
            *(f"{number:,}" for number in (row.tasks, row.steps, row.kept)),
        )
        for row in pruned
    ]
    total = f"{sum(row.tasks for row in pruned):,} tasks {'would be' if dry_run else 'were'} deleted"
    return "\n".join((table(("template", "ended", "before", "tasks", "steps", "kept"), rows), "", total))


@click.command()
@FORMAT
@database_options
def report(database: DatabaseOption, form: str) -> None:
    """Show the space used (each table, its dead rows, the size of a task), and the statements that take most time.

    Reads the server's statistics, which are slightly delayed, and no rows. Statements are listed only if the extension
    pg_stat_statements is installed.
    """

    async def read(app: App) -> tuple[Sizes, CostlyStatements]:
        return await app.sizes.read(), await app.sizes.costly()

    sizes, costly = connected(database, read)
    document = {**asdict(sizes), "bytes": sizes.bytes, "tasks": sizes.tasks, "bytes_per_task": sizes.bytes_per_task}
    document |= {"costly": asdict(costly)}
    print_as(form, document, lambda _: "\n".join((_size_text(sizes), "", _costly_text(costly))))


def _costly_text(statements: CostlyStatements) -> str:
    from tasker.cli.render.values import table
    from tasker.services.wording import one_line

    if statements.missing:
        return statements.missing
    rows = [
        (
            f"{query.total_ms / 1000:,.1f} s",
            f"{query.calls:,}",
            f"{query.mean_ms:,.2f} ms",
            one_line(query.statement, 100),
        )
        for query in statements.statements
    ]
    return table(("total", "calls", "mean", "statement"), rows)


def _size_text(sizes: Sizes) -> str:
    from tasker.cli.render.values import table

    rows = [
        (
            row.table,
            *map(_size, (row.table_bytes, row.index_bytes)),
            *(f"{number:,}" for number in (row.rows, row.dead)),
            f"{row.vacuumed_at:%Y-%m-%d %H:%M}" if row.vacuumed_at else "never",
        )
        for row in sizes.tables
    ]
    total = f"{_size(sizes.bytes)} for {sizes.tasks:,} tasks, {_size(sizes.bytes_per_task)} each"
    return "\n".join((table(("table", "size", "indexes", "rows", "dead", "vacuumed"), rows), "", total))


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1024:
            return f"{number:,.0f} {unit}"
        number /= 1024
    return f"{number:,.1f} TB"


@click.command()
@click.option("--prefix", default=PREFIX, show_default=True, help="Prefix of the role names.")
@click.option("--dry-run", is_flag=True, help="Only print the SQL.")
@FORMAT
@database_options
def roles(database: DatabaseOption, form: str, prefix: str, dry_run: bool) -> None:
    """Create a role for each kind of process, with the least rights each; safe to repeat.

    PREFIX_worker, PREFIX_orchestrator and PREFIX_api are for processes, PREFIX_exporter only reads metrics. The roles
    cannot log in: create users that are members (`create role w1 login password '...' in role tasker_worker`). Run it
    again after each `tasker db upgrade`, as the owner of the schema.
    """
    chosen = configured_for(database)
    role_set = Roles(prefix, _of_backend(chosen))
    if dry_run:
        sql = role_set.sql()
        print_as(form, {"sql": sql} if form == "json" else sql, str)
        return
    require_database(chosen.database_url, database.data_dir)
    with database_at(chosen, database.data_dir) as url:
        print_as(form, role_set.apply(url), _role_text)


def _of_backend(chosen: Configured) -> Callable[[Sequence[str]], str] | None:
    from tasker.messaging.backends import load_backend
    from tasker.messaging.port import GrantsRoles

    loaded = load_backend(chosen.backend, {})
    return loaded.role_sql if isinstance(loaded, GrantsRoles) else None


def _role_text(roles: Sequence[Role]) -> str:
    return "\n".join(
        f"{role.name}: {'created' if role.made else 'already exists'}, privileges granted" for role in roles
    )


@click.group(cls=GuessingGroup)
def db() -> None:
    """Create and upgrade the database schema, check its contents, delete old data."""


db.add_command(index_inputs)
db.add_command(prune)
db.add_command(report)
db.add_command(roles)


@db.command()
@click.option("--wait", is_flag=True, help="Wait for the server up to common.database.connect_wait_seconds.")
@FORMAT
@database_options
def upgrade(database: DatabaseOption, form: str, wait: bool) -> None:
    """Upgrade the database to the schema of this version, creating it if it does not exist.

    Functions written by a newer release are not replaced. Safe to repeat and to run concurrently; either everything is
    changed or nothing.
    """
    chosen = known_configuration(database)
    with database_at(chosen, database.data_dir) as url:
        seconds = chosen.database.connect_wait_seconds if wait else 0.0
        applied = with_database(url, seconds, lambda: _upgraded(url, chosen.backend))
        print_as(form, {"database": describe_url(url), "applied": list(applied)}, _upgraded_text)


@db.command()
@FORMAT
@database_options
def status(database: DatabaseOption, form: str) -> None:
    """Compare the database with this version. Exit code 1 unless it is current, 2 if there is none."""
    chosen = known_configuration(database)
    require_database(chosen.database_url, database.data_dir)
    with database_at(chosen, database.data_dir) as url:
        schema_status = migrate.status(url, _scripts_of(chosen.backend))
        if form == "json":
            click.echo(json.dumps(schema_status.to_dict()))
        else:
            _print_status(describe_url(url), schema_status)
    if schema_status.state != "current":
        raise click.exceptions.Exit(1)


@db.command()
@click.option("--repair", is_flag=True, help="Run the sweeps once first, and print what they repaired.")
@FORMAT
@database_options
def check(database: DatabaseOption, form: str, repair: bool) -> None:
    """Check the rows against the engine's invariants, and messages and workers against the rows.

    Use it after a failover that lost commits, or after restoring a backup. It reads all rows: run it rarely. Without
    --repair it changes nothing. With --repair it does what the next sweep of any process would do, and counts that in
    tasker.repairs. Findings that sweeps repair are marked. Exit code 1 if something is broken that nothing repairs.
    """

    async def act(app: App) -> tuple[Counter[str] | None, list[CheckFinding]]:
        repaired = await app.repairs.run() if repair else None
        return repaired, await app.checks.run()

    repaired, results = connected(database, act)
    if form == "json":
        findings = [{**asdict(finding), "is_broken": finding.is_broken} for finding in results]
        document = findings if repaired is None else {"repaired": repaired, "findings": findings}
        click.echo(json.dumps(document, indent=2))
    else:
        for line in (*_repair_lines(repaired), *_check_lines(results)):
            click.echo(line)
        click.echo("problems found" if any(finding.is_broken for finding in results) else "no problems found")
    if any(finding.is_broken for finding in results):
        raise click.exceptions.Exit(1)


@db.command()
@click.option(
    "--backend", default=DEFAULT_BACKEND, show_default=True, help="Messaging backend whose SQL the schema includes."
)
def sql(backend: str) -> None:
    """Print the SQL that creates the schema in an empty database. Connects to nothing."""
    click.echo(migrate.offline_sql(_scripts_of(backend)), nl=False)


def _upgraded(url: str, backend: str) -> Sequence[str]:
    ensure_database(url)
    return migrate.upgrade(url, _scripts_of(backend))


def _scripts_of(backend: str) -> Sequence[tuple[str, str]]:
    """Return the SQL of the backend; empty for a backend whose queues are outside the database."""
    from tasker.messaging.backends import load_backend
    from tasker.messaging.port import TransactionalBackend

    loaded = load_backend(backend, {})
    return loaded.install_sql() if isinstance(loaded, TransactionalBackend) else ()


def _upgraded_text(done: dict[str, Any]) -> str:
    came_to = f"{done['database']}: {'upgraded' if done['applied'] else 'already up to date'}"
    return "\n".join((*(f"applied {name}" for name in done["applied"]), came_to))


def _print_status(where: str, status: migrate.Status) -> None:
    if status.state == "empty":
        click.echo(f"{where}: empty, {len(status.pending)} scripts to apply")
    else:
        click.echo(f"{where}: {status.state}")
        for title in ("pending", "outdated", "edited", "unknown", "superseded"):
            for name in getattr(status, title):
                click.echo(f"  {title:<10} {name}")
    if status.state in ("empty", "outdated"):
        click.echo("Run `tasker db upgrade` with the same options.")
    if status.superseded:
        click.echo(
            "The superseded scripts are from a newer release of Tasker; this version works with them and keeps them."
        )


def _repair_lines(repaired: Counter[str] | None) -> Iterator[str]:
    if repaired is not None:
        yield from (f"{count:>7}  repaired: {kind}" for kind, count in sorted(repaired.items()))
        if not repaired:
            yield "nothing to repair"


def _check_lines(findings: list[CheckFinding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.count:>7}  {finding.what}"
        yield from (f"           {example}" for example in finding.examples)
        if finding.repaired_by:
            yield f"           repaired by: {finding.repaired_by}"
