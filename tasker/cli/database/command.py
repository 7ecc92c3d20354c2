"""`tasker db`: the schema of a database, embedded or not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import (
    FORMAT,
    connected,
    database_at,
    known_configuration,
    print_as,
    require_database,
)
from tasker.cli.database.index_inputs import index_inputs
from tasker.cli.database.prune import prune
from tasker.cli.database.report import report
from tasker.cli.database.roles import roles
from tasker.cli.guessing import GuessingGroup
from tasker.cli.options import DatabaseOption, database_options
from tasker.contracts.messaging import DEFAULT_BACKEND
from tasker.db import migrate
from tasker.db.awaited import with_database
from tasker.db.database import describe_url, ensure_database

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.services.checks import CheckFinding


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
        found = migrate.status(url, _scripts_of(chosen.backend))
        if form == "json":
            click.echo(json.dumps(found.to_dict()))
        else:
            _print_status(describe_url(url), found)
    if found.state != "current":
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

    repaired, found = connected(database, act)
    if form == "json":
        findings = [{**asdict(each), "is_broken": each.is_broken} for each in found]
        told = findings if repaired is None else {"repaired": repaired, "findings": findings}
        click.echo(json.dumps(told, indent=2))
    else:
        for line in (*_repair_lines(repaired), *_check_lines(found)):
            click.echo(line)
        click.echo("problems found" if any(each.is_broken for each in found) else "no problems found")
    if any(each.is_broken for each in found):
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
    from tasker.contracts.messaging import TransactionalBackend
    from tasker.messaging.registry import load_backend

    loaded = load_backend(backend, {})
    return loaded.install_sql() if isinstance(loaded, TransactionalBackend) else ()


def _upgraded_text(done: dict[str, Any]) -> str:
    came_to = f"{done['database']}: {'upgraded' if done['applied'] else 'already up to date'}"
    return "\n".join((*(f"applied {name}" for name in done["applied"]), came_to))


def _print_status(where: str, found: migrate.Status) -> None:
    if found.state == "empty":
        click.echo(f"{where}: empty, {len(found.pending)} scripts to apply")
    else:
        click.echo(f"{where}: {found.state}")
        for title in ("pending", "outdated", "edited", "unknown", "superseded"):
            for name in getattr(found, title):
                click.echo(f"  {title:<10} {name}")
    if found.state in ("empty", "outdated"):
        click.echo("Run `tasker db upgrade` with the same options.")
    if found.superseded:
        click.echo(
            "The superseded scripts are from a newer release of Tasker; this version works with them and keeps them."
        )


def _repair_lines(repaired: Counter[str] | None) -> Iterator[str]:
    if repaired is not None:
        yield from (f"{count:>7}  repaired: {kind}" for kind, count in sorted(repaired.items()))
        if not repaired:
            yield "nothing to repair"


def _check_lines(findings: list[CheckFinding]) -> Iterator[str]:
    for each in findings:
        yield f"{each.count:>7}  {each.what}"
        yield from (f"           {example}" for example in each.examples)
        if each.repaired_by:
            yield f"           repaired by: {each.repaired_by}"
