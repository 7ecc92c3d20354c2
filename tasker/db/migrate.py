"""Upgrade of a database to this version's schema: one transaction, one upgrade at a time, cheap if up to date.

Alembic orders and records the migrations; the SQL files are the source. Functions are re-applied by checksum.
"""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.db.connection import LOCKED, is_lost
from tasker.db.database import connect, conninfo, lost
from tasker.db.limits import MIGRATION
from tasker.db.sql_files import APPLIED, HERE, RecordedScript, Schema, SchemaDifference, Script, read_schema
from tasker.errors import DatabaseError, DatabaseUnavailable
from tasker.version import __version__

if TYPE_CHECKING:
    import alembic.config
    import psycopg
    import sqlalchemy

    Connection = psycopg.Connection[tuple[Any, ...]]

UPGRADE_LOCK = 7_281_655_301  # the same number in every version
LOCK_TIMEOUT_SECONDS = 30.0
VIEW_LOCK_TIMEOUT_MS, VIEW_PAUSE_SECONDS = 1_000, 1.0
READERS = """select distinct a.application_name, a.pid
  from pg_locks l join pg_class c on c.oid = l.relation join pg_stat_activity a using (pid)
  where c.relkind = 'v' and c.relnamespace = 'tasker'::regnamespace and l.granted
    and l.database = (select oid from pg_database where datname = current_database()) and a.pid <> pg_backend_pid()
  order by a.pid"""
INSUFFICIENT_PRIVILEGE = "42501"
UNCHECKED = "set local check_function_bodies = off"
RECORD = """insert into tasker.schema_scripts as s (name, sha256, release) values (%s, %s, %s)
  on conflict (name) do update set sha256 = excluded.sha256, release = excluded.release,
    applied_at = case when s.sha256 = excluded.sha256 then s.applied_at else excluded.applied_at end"""
_log = logging.getLogger("tasker.db")


@dataclass(frozen=True, slots=True)
class Status:
    """Comparison of a database with this version; the fields hold names of scripts."""

    state: str
    """`empty`, `current`, `outdated`, `newer` or `edited`."""
    applied: tuple[str, ...]
    pending: tuple[str, ...]
    """Scripts that were never applied."""
    outdated: tuple[str, ...]
    """Scripts that were applied with another content."""
    edited: tuple[str, ...]
    unknown: tuple[str, ...]
    superseded: tuple[str, ...]
    """Scripts replaced by a newer release: they stay, and this version works with them."""

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a mapping of plain values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def upgrade(
    url: str,
    extra_scripts: Sequence[tuple[str, str]] = (),
    *,
    lock_timeout_seconds: float = LOCK_TIMEOUT_SECONDS,
    root: Path = HERE,
    release: str = __version__,
) -> list[str]:
    """Apply the scripts that the database lacks, in one transaction, and return their names.

    `extra_scripts` are (name, SQL) pairs of a messaging backend; `release` is the release that the SQL belongs to.
    Functions written by a newer release stay as they are, which is logged (rule 24). For a current database this costs
    one query and loads neither Alembic nor SQLAlchemy.

    Raises `SchemaOutdated` if the database is newer or its migrations were edited, `DatabaseUnavailable`, and
    `DatabaseError` with the script's name and line, or if another upgrade holds the lock for longer than
    `lock_timeout_seconds`.
    """
    schema = read_schema(extra_scripts, root, release)
    with _as_outage(url):
        with connect(url) as connection:
            difference = schema.difference(_applied(connection))
        difference.refuse_foreign()
        if not difference.is_empty:
            difference = _upgrade(url, schema, root, lock_timeout_seconds)
    if difference.superseded:
        superseded = difference.superseded
        _log.warning("schema_newer ours=%s theirs=%s kept=%s", release, difference.newest, ",".join(superseded))
    return [script.name for script in (*difference.pending, *difference.outdated)]


def status(
    url: str, extra_scripts: Sequence[tuple[str, str]] = (), *, root: Path = HERE, release: str = __version__
) -> Status:
    """Compare the database with this version. Changes nothing."""
    with connect(url) as connection:
        applied = _applied(connection)
    difference = read_schema(extra_scripts, root, release).difference(applied)
    missing = [script for script in difference.outdated if script.name not in applied]
    states = {"newer": bool(difference.unknown), "edited": bool(difference.edited), "empty": not applied}
    otherwise = "current" if difference.is_empty else "outdated"
    return Status(
        state=next((state for state, holds in states.items() if holds), otherwise),
        applied=tuple(sorted(applied)),
        pending=tuple(script.name for script in (*difference.pending, *missing)),
        outdated=tuple(script.name for script in difference.outdated if script not in missing),
        edited=difference.edited,
        unknown=tuple(difference.unknown),
        superseded=tuple(difference.superseded),
    )


def offline_sql(extra_scripts: Sequence[tuple[str, str]] = (), *, root: Path = HERE) -> str:
    """Return the SQL of an upgrade from an empty database, for an administrator to read and run. Needs no database."""
    from alembic import command

    schema = read_schema(extra_scripts, root)
    buffer = io.StringIO()
    command.upgrade(alembic_config(root, output=buffer), "head", sql=True)
    parts = [_bootstrap(), buffer.getvalue(), "BEGIN;", f"{UNCHECKED};"]
    parts += [f"-- {script.name}\n{script.sql.rstrip().rstrip(';')};" for script in schema.replaceable]
    parts += [_record_literal(script, schema.release) for script in (*schema.migrations, *schema.replaceable)]
    return "\n\n".join([*parts, "COMMIT;"]) + "\n"


@contextmanager
def _as_outage(url: str) -> Iterator[None]:
    """Raise `DatabaseUnavailable` for a connection lost in the middle, through whichever library it is reported."""
    try:
        yield
    except Exception as error:
        for candidate in (error, getattr(error, "orig", None), error.__cause__):
            if isinstance(candidate, Exception) and is_lost(candidate):
                raise DatabaseUnavailable(lost(url, candidate)) from error
        raise


def _applied(connection: Connection) -> dict[str, RecordedScript]:
    import psycopg

    try:
        return {name: RecordedScript(sha256, release) for name, sha256, release in connection.execute(APPLIED)}
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return {}
    except psycopg.errors.InsufficientPrivilege as error:
        message = f"the record of the schema cannot be read: {error.diag.message_primary}"
        raise DatabaseError(message, hint=_hint(connection, error)) from error


def _upgrade(url: str, schema: Schema, root: Path, lock_timeout_seconds: float) -> SchemaDifference:
    """Apply and record the missing scripts; return the difference that was applied."""
    with _transaction(url) as (bound, connection):
        _lock(connection, lock_timeout_seconds)
        _run(connection, Script("bootstrap", _bootstrap()))
        difference = schema.difference(_applied(connection))  # again: another process may have upgraded meanwhile
        difference.refuse_foreign()
        if difference.pending:
            _migrate(bound, connection, root)
        _replace(connection, difference.outdated, lock_timeout_seconds)
        scripts = (*difference.pending, *difference.outdated, *difference.unchanged)
        records = [(script.name, script.sha256, schema.release) for script in scripts]
        connection.cursor().executemany(RECORD, records)
    return difference


@contextmanager
def _transaction(url: str) -> Iterator[tuple[sqlalchemy.Connection, Connection]]:
    """Open one transaction on one connection, used through SQLAlchemy (by Alembic) and directly (by scripts)."""
    import psycopg
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    info = conninfo(url, session=MIGRATION, application_name="tasker upgrade")
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(info), poolclass=NullPool)
    with engine.begin() as bound:
        yield bound, bound.connection.driver_connection  # type: ignore[misc]


def _lock(connection: Connection, timeout_seconds: float) -> None:
    import psycopg

    connection.execute("select set_config('lock_timeout', %s, true)", [f"{int(timeout_seconds * 1000)}ms"])
    try:
        connection.execute("select pg_advisory_xact_lock(%s)", [UPGRADE_LOCK])
    except psycopg.errors.LockNotAvailable:
        raise DatabaseError(
            f"another upgrade of this database has been running for {timeout_seconds:g} seconds",
            hint="wait for it to end, then run the command again",
        ) from None


def _migrate(bound: sqlalchemy.Connection, connection: Connection, root: Path) -> None:
    import psycopg
    from alembic import command
    from sqlalchemy.exc import DBAPIError

    try:
        command.upgrade(alembic_config(root, connection=bound), "head")
    except DBAPIError as error:
        cause = error.orig
        if not isinstance(cause, psycopg.Error):
            raise DatabaseError(f"a migration failed: {cause}") from error
        raise DatabaseError(f"a migration failed: {cause}", hint=_hint(connection, cause)) from cause


def alembic_config(
    root: Path = HERE, *, output: io.StringIO | None = None, connection: sqlalchemy.Connection | None = None
) -> alembic.config.Config:
    """Return Alembic's configuration, for `output` (offline) or an open `connection`."""
    from alembic.config import Config

    config = Config(output_buffer=output)
    config.set_main_option("script_location", str(HERE / "migrations"))
    config.set_main_option("version_locations", str(root / "migrations" / "versions"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    config.attributes["sql_folder"] = root / "sql" / "migrations"
    return config


def _replace(connection: Connection, scripts: Sequence[Script], lock_timeout_seconds: float) -> None:
    """Create the functions unchecked, since they may call each other in any order, then again with checks."""
    others = [script for script in scripts if not script.is_view]
    connection.execute(UNCHECKED)
    for script in others:
        if script.is_function:
            _run(connection, script)
    _replace_views(connection, [script for script in scripts if script.is_view], lock_timeout_seconds)
    connection.execute("set local check_function_bodies = on")
    for script in others:
        _run(connection, script)


def _replace_views(connection: Connection, scripts: Sequence[Script], lock_timeout_seconds: float) -> None:
    """Replace all views or none, retrying with short lock waits so that readers of a view are blocked only briefly."""
    deadline, attempts = time.monotonic() + lock_timeout_seconds, 0
    while scripts:
        try:
            with connection.transaction():
                connection.execute("select set_config('lock_timeout', %s, true)", [f"{VIEW_LOCK_TIMEOUT_MS}ms"])
                for script in scripts:
                    _run(connection, script)
            return
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) != LOCKED:
                raise
            readers = ", ".join(f"{name or 'a session'} (pid {pid})" for name, pid in connection.execute(READERS))
            if time.monotonic() >= deadline:
                hint = "end these transactions, then run the command again"
                raise DatabaseError(f"views are in use by {readers}", hint=hint) from error
            attempts += 1
            if attempts == 1:
                _log.warning("views_in_use by=%r: trying again for %g s", readers, lock_timeout_seconds)
            time.sleep(VIEW_PAUSE_SECONDS)


def _run(connection: Connection, script: Script) -> None:
    import psycopg

    try:
        connection.execute(script.sql)
    except psycopg.Error as error:
        position = int(error.diag.statement_position or 1)
        line = script.sql.count("\n", 0, position - 1) + 1
        message = error.diag.message_primary or str(error)
        raise DatabaseError(f"{script.name}, line {line}: {message}", hint=_hint(connection, error)) from error


def _hint(connection: Connection, error: psycopg.Error) -> str | None:
    """Return the server's hint, or the grant that the role lacks."""
    if error.sqlstate != INSUFFICIENT_PRIVILEGE:
        return error.diag.message_hint
    user, message = connection.info.user, error.diag.message_primary or ""
    if denied := re.search(r"permission denied for schema (\S+)", message):
        return f"as the schema's owner run: grant usage, create on schema {denied[1]} to {user}"
    if "permission denied for database" in message:
        return (
            f"run: grant create on database {connection.info.dbname} to {user}; or create the schema for it: "
            f"create schema NAME authorization {user}"
        )
    return "use the role that owns the schema tasker"


def _bootstrap() -> str:
    return (HERE / "sql" / "bootstrap.sql").read_text(encoding="utf-8")


def _record_literal(script: Script, release: str) -> str:
    name = script.name.replace("'", "''")
    return RECORD.replace("%s, %s, %s", f"'{name}', '{script.sha256}', '{release}'") + ";"
