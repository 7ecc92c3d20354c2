"""What this version wants to find in a database: its SQL files, their checksums, and how a database differs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasker.errors import SchemaOutdated

HERE = Path(__file__).parent
"""Holds `sql/` (the files) and `migrations/` (Alembic's side of them)."""

APPLIED = "select name, sha256 from tasker.schema_scripts"
"""The one query that tells whether a database is current."""


@dataclass(frozen=True, slots=True)
class Script:
    """One SQL script under the name that the database remembers it by."""

    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Its checksum."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def is_function(self) -> bool:
        """True for a file of `sql/functions`."""
        return self.name.startswith("functions/")


@dataclass(frozen=True, slots=True)
class Schema:
    """All scripts, in the order in which they are applied.

    A migration is applied once and never changes after its release; the other scripts (functions, then what the
    messaging backend brings) create or replace, and are applied again when their content changes.
    """

    migrations: tuple[Script, ...]
    replaceable: tuple[Script, ...]

    def difference(self, applied: Mapping[str, str]) -> Difference:
        """Compare with the checksums that a database has recorded."""
        known = {script.name: script.sha256 for script in self.migrations}
        return Difference(
            pending=tuple(script for script in self.migrations if script.name not in applied),
            outdated=tuple(script for script in self.replaceable if applied.get(script.name) != script.sha256),
            edited=tuple(name for name, sha in known.items() if applied.get(name, sha) != sha),
            unknown=tuple(sorted(name for name in applied if name.startswith("migrations/") and name not in known)),
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """What a database lacks, and what it has that this version does not know."""

    pending: tuple[Script, ...]
    outdated: tuple[Script, ...]
    edited: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """True when the database is what this version wants."""
        return not (self.pending or self.outdated or self.edited or self.unknown)

    def refuse_foreign(self) -> None:
        """Raise `SchemaOutdated` when the database is newer than this version, or a migration was edited."""
        if self.unknown:
            raise SchemaOutdated(
                f"the database is newer than this version of Tasker, which does not know {', '.join(self.unknown)}",
                hint="pip install --upgrade tasker",
            )
        if self.edited:
            raise SchemaOutdated(
                f"{', '.join(self.edited)} changed after it was applied to this database",
                hint="a released migration is never edited; take a new database (the embedded one: remove .tasker)",
            )

    def refuse_any(self) -> None:
        """Raise `SchemaOutdated` unless the database is what this version wants (rule 24 of the protocol)."""
        self.refuse_foreign()
        if not self.is_empty:
            missing = ", ".join(script.name for script in (*self.pending, *self.outdated))
            raise SchemaOutdated(
                f"the database's schema is not the one this version of Tasker works with; it lacks {missing}",
                hint="tasker db upgrade --database-url URL",
            )


def read_schema(extra_scripts: Sequence[tuple[str, str]] = (), root: Path = HERE) -> Schema:
    """The schema from `root/sql`, and the (name, SQL) scripts that a messaging backend adds to it."""
    migrations = _read(root / "sql" / "migrations", "*.up.sql", ".up.sql")
    functions = _read(root / "sql" / "functions", "*.sql", ".sql")
    backend = tuple(Script(f"backend/{name}", sql) for name, sql in extra_scripts)
    return Schema(migrations, functions + backend)


def _read(folder: Path, pattern: str, suffix: str) -> tuple[Script, ...]:
    return tuple(
        Script(f"{folder.name}/{path.name.removesuffix(suffix)}", path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob(pattern))
    )
