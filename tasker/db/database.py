"""Reaching a PostgreSQL database: connection URLs, one synchronous connection, creating what is missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tasker.errors import DatabaseUnavailable, UsageError

if TYPE_CHECKING:
    import psycopg

MAINTENANCE_DATABASE = "postgres"


def libpq_url(url: str) -> str:
    """The URL as the driver wants it: `postgresql+psycopg://...` and `postgres://...` are accepted as well.

    Raises `UsageError` for anything else.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or not re.fullmatch(r"postgres(ql)?(\+\w+)?", scheme):
        raise UsageError(
            "the database URL does not name a PostgreSQL database",
            hint="expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        )
    return f"postgresql://{rest}"


def describe_url(url: str) -> str:
    """The database and its host, for messages; never the password."""
    parts = _parts(url)
    return f"database '{parts.get('dbname', '')}' on {parts.get('host', 'the local server')}"


def connect(url: str, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection in autocommit mode. Raises `DatabaseUnavailable`, saying what the server answered."""
    import psycopg

    try:
        return psycopg.connect(libpq_url(url), autocommit=True, **options)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            f"cannot connect to {describe_url(url)}: {error}",
            hint="check the URL and that the server is running",
        ) from None


def ensure_database(url: str) -> bool:
    """Create the database that the URL names unless it exists. Returns True when it was created.

    Raises `DatabaseUnavailable` when the server cannot be reached, or refuses.
    """
    import psycopg
    from psycopg import sql

    name = _parts(url)["dbname"]
    with connect(url, dbname=MAINTENANCE_DATABASE) as connection:
        if connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone():
            return False
        try:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            return False  # somebody else was quicker
        except psycopg.Error as error:
            raise DatabaseUnavailable(f"cannot create {describe_url(url)}: {error}") from None
    return True


def _parts(url: str) -> dict[str, Any]:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return conninfo_to_dict(libpq_url(url))
    except psycopg.ProgrammingError as error:
        raise UsageError(f"the database URL cannot be read: {error}") from None
