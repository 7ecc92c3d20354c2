"""`tasker db`: the schema of a database, embedded or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tasker.db import migrate
from tasker.db.database import describe_url, ensure_database
from tasker.db.embedded import DEFAULT_DATA_DIR, EmbeddedServer


def _database_options(command: Callable[..., Any]) -> Callable[..., Any]:
    where = click.option(
        "--database-url", metavar="URL", envvar="DATABASE_URL", help="A server's database.  [default: the embedded one]"
    )
    return where(_backend_option(command))


def _backend_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--backend", default="pgmq", show_default=True, help="The messaging backend whose SQL belongs to the schema."
    )(command)


@click.group()
def db() -> None:
    """Create and upgrade the database schema."""


@db.command()
@_database_options
def upgrade(database_url: str | None, backend: str) -> None:
    """Bring the database to this version's schema, creating it when it does not exist.

    Safe to repeat and to run from several places at once; changes everything or nothing.
    """
    with _database(database_url) as url:
        ensure_database(url)
        applied = migrate.upgrade(url, _scripts_of(backend))
        for name in applied:
            click.echo(f"applied {name}")
        click.echo(f"{describe_url(url)}: {'upgraded' if applied else 'already current'}")


@db.command()
@_database_options
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(database_url: str | None, backend: str, form: str) -> None:
    """Compare the database with this version. Exit code 1 unless it is current."""
    with _database(database_url) as url:
        found = migrate.status(url, _scripts_of(backend))
        if form == "json":
            click.echo(json.dumps(found.to_dict()))
        else:
            _print_status(describe_url(url), found)
    if found.state != "current":
        raise click.exceptions.Exit(1)


@db.command()
@_backend_option
def sql(backend: str) -> None:
    """Print the SQL that creates the schema in an empty database. Connects to nothing."""
    click.echo(migrate.offline_sql(_scripts_of(backend)), nl=False)


@contextmanager
def _database(database_url: str | None) -> Iterator[str]:
    if database_url is not None:
        yield database_url
        return
    server = EmbeddedServer.start(Path(DEFAULT_DATA_DIR))
    try:
        yield server.url
    finally:
        server.stop()


def _scripts_of(backend: str) -> Sequence[tuple[str, str]]:
    """The SQL that the backend brings along; none for one whose queues live elsewhere."""
    from tasker.contracts.messaging import TransactionalBackend
    from tasker.messaging.registry import load_backend

    loaded = load_backend(backend, {})
    return loaded.install_sql() if isinstance(loaded, TransactionalBackend) else ()


def _print_status(where: str, found: migrate.Status) -> None:
    click.echo(f"{where}: {found.state}")
    for title in ("pending", "outdated", "edited", "unknown"):
        for name in getattr(found, title):
            click.echo(f"  {title:<9} {name}")
    if found.state in ("empty", "outdated"):
        click.echo("Run `tasker db upgrade` with the same options.")
