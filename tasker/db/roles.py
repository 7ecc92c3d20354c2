"""Roles of the database with the rights of each kind of process, and the index of tasks' inputs.

It is created only on demand, because every submission pays for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import psycopg

from tasker.dataclasses import dataclass
from tasker.db.database import connect
from tasker.db.limits import MIGRATION
from tasker.db.migrate import UPGRADE_LOCK
from tasker.db.sql_files import HERE, query
from tasker.errors import DatabaseError, UsageError

KINDS = ("worker", "orchestrator", "api", "exporter")
"""Process kinds, each with a role. The exporter only reads metrics; the others work, and send and receive messages."""
PREFIX = "tasker"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")


@dataclass(frozen=True, slots=True)
class Role:
    """Role on the server; `made` is True if this call created it."""

    name: str
    made: bool


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles of one fleet, whose names begin with `prefix`. Raises `UsageError` for a prefix that would need quotes.

    `of_backend` returns the grants that the messaging backend needs for these roles if its queues are in this database.
    """

    prefix: str = PREFIX
    of_backend: Callable[[Sequence[str]], str] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.prefix):
            hint = "lower-case letters, digits and _, at most 41 characters"
            raise UsageError(f"{self.prefix!r} cannot begin the name of a role", hint=hint)

    @property
    def names(self) -> dict[str, str]:
        """Role name of each kind."""
        return {kind: f"{self.prefix}_{kind}" for kind in KINDS}

    def sql(self) -> str:
        """Return the SQL that creates the roles in one transaction; it may be run again."""
        names = self.names
        grants = (HERE / "sql" / "roles.sql").read_text("utf-8")
        for kind, name in names.items():
            grants = grants.replace(f"{{{kind}}}", name)
        extra = self.of_backend([names[kind] for kind in KINDS if kind != "exporter"]) if self.of_backend else ""
        return "\n".join([f"select pg_advisory_xact_lock({UPGRADE_LOCK});", *map(_made, names.values()), grants, extra])

    def apply(self, url: str) -> list[Role]:
        """Create missing roles and reset all their privileges to the expected ones.

        Raises `DatabaseError` if the user may not create roles or does not own the schema.
        """
        with connect(url, session=MIGRATION, application_name="tasker roles") as connection, connection.transaction():
            there = {name for (name,) in connection.execute("select rolname from pg_roles")}
            try:
                connection.execute(self.sql().encode())
            except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName) as error:
                raise DatabaseError(
                    f"the roles cannot be made: {error.diag.message_primary}",
                    hint="run `tasker db upgrade`, then this as the owner of the schema with CREATEROLE; "
                    "or give the SQL of --dry-run to who may",
                ) from error
        return [Role(name, name not in there) for name in self.names.values()]


def _made(name: str) -> str:
    return (
        f"do $do$ begin if not exists (select from pg_roles where rolname = '{name}') then "
        f"create role {name} nologin; end if; end $do$;"
    )


def create_input_index(url: str) -> bool:
    """Create the index from all existing inputs without blocking running work; return False if it exists.

    An interrupted creation can be repeated. Raises `DatabaseError` if the role does not own the schema.
    """
    return _change(url, present=True)


def drop_input_index(url: str) -> bool:
    """Remove the index; return False if there is none. Raises `DatabaseError` if the role does not own the schema."""
    return _change(url, present=False)


def _change(url: str, *, present: bool) -> bool:
    with connect(url, session=MIGRATION, application_name="tasker input index") as connection:
        try:
            row = connection.execute(query("input_index", "state").encode()).fetchone()
            if present == (row is not None and row[0]):
                return False
            # an interrupted creation leaves an index that queries cannot use but writes still pay for
            if row is not None:
                connection.execute(query("input_index", "drop").encode())
            if present:
                connection.execute(query("input_index", "create").encode())
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable) as error:
            raise DatabaseError(
                f"the index of inputs cannot be changed: {' '.join(str(error).split())}",
                hint="connect as the owner of the schema, after `tasker db upgrade`",
            ) from None
    return present or row is not None
