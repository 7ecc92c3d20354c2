"""What this version wants to find in a database: its SQL files, their checksums, and how a database differs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tasker.contracts.dataclasses import dataclass
from tasker.db.release import release_order
from tasker.errors import SchemaOutdated
from tasker.version import DISTRIBUTION, __version__

_VIEW = re.compile(r"(?m)^(?:--.*\n)*create or replace view tasker\.(\w+)")
HERE = Path(__file__).parent
"""Holds `sql/` (the files) and `migrations/` (Alembic's side of them)."""

APPLIED = "select s.name, s.sha256, to_jsonb(s)->>'release' from tasker.schema_scripts s"
"""The one query that tells whether a database is current; also where the record has no releases yet."""


class RecordedScript(NamedTuple):
    """What a database remembers of a script."""

    sha256: str
    release: str | None
    """The release that wrote it last; None when the record is older than releases."""


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

    @property
    def is_view(self) -> bool:
        """True for what replaces a view, which waits for every transaction that has read it."""
        return _VIEW.search(self.sql) is not None


@dataclass(frozen=True, slots=True)
class Schema:
    """All scripts, in the order in which they are applied.

    A migration is applied once and never changes after its release; the other scripts (functions, then what the
    messaging backend brings) create or replace, and are applied again when their content changes, unless a newer
    release wrote what is there: processes of the previous release may start again while a fleet is upgraded (rule 24).
    """

    migrations: tuple[Script, ...]
    replaceable: tuple[Script, ...]
    release: str = __version__

    def difference(self, applied: Mapping[str, RecordedScript]) -> SchemaDifference:
        """Compare with what a database has recorded."""
        known = {script.name: script.sha256 for script in self.migrations}
        changed = [script for script in self.replaceable if not _has(applied, script)]
        superseded = {script.name for script in changed if self._precedes(applied.get(script.name))}
        return SchemaDifference(
            pending=tuple(script for script in self.migrations if script.name not in applied),
            outdated=tuple(script for script in changed if script.name not in superseded),
            edited=tuple(name for name, sha in known.items() if name in applied and applied[name].sha256 != sha),
            unknown={
                name: recorded.release
                for name, recorded in sorted(applied.items())
                if name.startswith("migrations/") and name not in known
            },
            superseded={name: applied[name].release for name in sorted(superseded)},
            unchanged=tuple(
                script
                for script in (*self.migrations, *self.replaceable)
                if _has(applied, script) and not self._precedes(applied[script.name])
            ),
        )

    def _precedes(self, recorded: RecordedScript | None) -> bool:
        """True for what a newer release wrote."""
        return recorded is not None and release_order(recorded.release) > release_order(self.release)


def _has(applied: Mapping[str, RecordedScript], script: Script) -> bool:
    return script.name in applied and applied[script.name].sha256 == script.sha256


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """What a database lacks, and what it has that this version does not know."""

    pending: tuple[Script, ...]
    outdated: tuple[Script, ...]
    edited: tuple[str, ...]
    unknown: Mapping[str, str | None]
    """Migrations that this version does not know, each with the release that applied it."""
    superseded: Mapping[str, str | None]
    """Other scripts that a newer release has replaced, each with that release: they stay."""
    unchanged: tuple[Script, ...]
    """What is as this version wants it: an upgrade records that this release wants it, too."""

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to apply and nothing to refuse."""
        return not (self.pending or self.outdated or self.edited or self.unknown)

    @property
    def newest(self) -> str | None:
        """The newest release that has left something here which this version does not know."""
        return max((*self.unknown.values(), *self.superseded.values()), key=release_order, default=None)

    def refuse_foreign(self) -> None:
        """Raise `SchemaOutdated` when the database is newer than this version, or a migration was edited."""
        if self.unknown:
            raise SchemaOutdated(
                "the database is newer than this version of Tasker, which does not know "
                f"{', '.join(self.unknown)}{f' (of {self.newest})' if self.newest else ''}",
                hint=f"install {DISTRIBUTION} {self.newest} or newer"
                if self.newest
                else f"install the release of {DISTRIBUTION} that upgraded the database",
            )
        if self.edited:
            raise SchemaOutdated(
                f"{', '.join(self.edited)} changed after it was applied to this database",
                hint="a released migration is never edited; take a new database (the embedded one: remove .tasker)",
            )


def read_schema(extra_scripts: Sequence[tuple[str, str]] = (), root: Path = HERE, release: str = __version__) -> Schema:
    """The schema of `release` from `root/sql`, and the (name, SQL) scripts that a messaging backend adds to it."""
    migrations = _read(root / "sql" / "migrations", "up/*.sql")
    functions = tuple(part for script in _read(root / "sql" / "functions", "*.sql") for part in _views_apart(script))
    backend = tuple(Script(f"backend/{name}", sql) for name, sql in extra_scripts)
    return Schema(migrations, functions + backend, release)


def _read(folder: Path, pattern: str) -> tuple[Script, ...]:
    return tuple(
        Script(f"{folder.name}/{path.stem}", path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob(pattern), key=lambda path: path.name)
    )


def _views_apart(script: Script) -> list[Script]:
    """Each view of a file as a script of its own, so that one that stays the same is not replaced."""
    views = [*_VIEW.finditer(script.sql)]
    ends = [view.start() for view in views[1:]] + [len(script.sql)]
    parts = (
        [
            Script(f"{script.name}/{view[1]}", script.sql[view.start() : end])
            for view, end in zip(views, ends, strict=True)
        ]
        if views
        else []
    )
    return parts or [script]
