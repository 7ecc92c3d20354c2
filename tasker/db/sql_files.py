"""The SQL files of this version: their order, checksums and releases, and the named queries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from tasker.dataclasses import dataclass
from tasker.errors import SchemaOutdated
from tasker.version import DISTRIBUTION, __version__

FOLDER = Path(__file__).parent / "sql" / "queries"


@cache
def query(file: str, name: str) -> str:
    """Return the SQL of the query `name` in `FILE.sql`. Raises `KeyError` if it does not exist."""
    return _queries(file)[name]


@cache
def _queries(file: str) -> dict[str, str]:
    text = (FOLDER / f"{file}.sql").read_text(encoding="utf-8")
    parts = text.split("-- name: ")[1:]
    return {name.strip(): _without_comments(body) for name, _, body in (part.partition("\n") for part in parts)}


def _without_comments(body: str) -> str:
    return "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()


_PARTS = re.compile(r"(\d+(?:\.\d+)*)[.-]?(dev|a|b|rc|post)?[.-]?(\d*)")
_STAGES = ("dev", "a", "b", "rc", "", "post")
Order = tuple[tuple[int, ...], int, int]


@lru_cache(64)  # compared for every record of a database, most of which have the same release
def release_order(release: str) -> Order:
    """Return the sort key of a release; an invalid one sorts before all others."""
    match = _PARTS.match(release)
    if match is None:
        return ((), 0, 0)
    numbers, stage, count = match.groups(default="")
    significant = re.sub(r"(\.0+)+$", "", numbers)  # 1.0 equals 1.0.0
    return tuple(int(number) for number in significant.split(".")), _STAGES.index(stage), int(count or 0)


_VIEW = re.compile(r"(?m)^(?:--.*\n)*create or replace view tasker\.(\w+)")
HERE = Path(__file__).parent
"""Folder of `sql/` (the files) and `migrations/` (their Alembic counterparts)."""

APPLIED = "select name, sha256, release from tasker.schema_scripts"
"""Single query that shows whether a database is current."""


class RecordedScript(NamedTuple):
    """Record of an applied script in a database."""

    sha256: str
    release: str
    """Release that last wrote the script."""


@dataclass(frozen=True, slots=True)
class Script:
    """SQL script and the name under which databases record it."""

    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Checksum of the SQL."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def is_function(self) -> bool:
        """True for a file of `sql/functions`."""
        return self.name.startswith("functions/")

    @property
    def is_view(self) -> bool:
        """True for a view of `sql/views`: replacing it waits for every transaction that has read it."""
        return self.name.startswith("views/")


@dataclass(frozen=True, slots=True)
class Schema:
    """All scripts, in the order in which they are applied.

    A migration is applied once and never changes after its release. The other scripts (functions, then views, then
    those of the messaging backend) create or replace objects and are re-applied when their content changes, unless a
    newer release wrote the existing version: processes of the previous release may restart while a fleet is upgraded
    (rule 24).
    """

    migrations: tuple[Script, ...]
    replaceable: tuple[Script, ...]
    release: str = __version__

    def difference(self, applied: Mapping[str, RecordedScript]) -> SchemaDifference:
        """Compare the scripts with those recorded in a database."""
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
        """Return True if a newer release wrote the script."""
        return recorded is not None and release_order(recorded.release) > release_order(self.release)


def _has(applied: Mapping[str, RecordedScript], script: Script) -> bool:
    return script.name in applied and applied[script.name].sha256 == script.sha256


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """Scripts that a database lacks, and those that this version does not know."""

    pending: tuple[Script, ...]
    outdated: tuple[Script, ...]
    edited: tuple[str, ...]
    unknown: Mapping[str, str]
    """Migrations unknown to this version, each with the release that applied it."""
    superseded: Mapping[str, str]
    """Other scripts replaced by a newer release, each with that release: they stay."""
    unchanged: tuple[Script, ...]
    """Scripts that already match this version; an upgrade records that this release also needs them."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to apply and nothing to refuse."""
        return not (self.pending or self.outdated or self.edited or self.unknown)

    @property
    def newest(self) -> str | None:
        """Newest release that left something unknown to this version, or None."""
        return max((*self.unknown.values(), *self.superseded.values()), key=release_order, default=None)

    def refuse_foreign(self) -> None:
        """Raise `SchemaOutdated` if the database is newer than this version, or a migration was edited."""
        if self.unknown:
            raise SchemaOutdated(
                "the database is newer than this version of Tasker, which does not know "
                f"{', '.join(self.unknown)} (of {self.newest})",
                hint=f"install {DISTRIBUTION} {self.newest} or newer",
            )
        if self.edited:
            raise SchemaOutdated(
                f"{', '.join(self.edited)} changed after it was applied to this database",
                hint="a released migration is never edited; take a new database (the embedded one: remove .tasker)",
            )


def read_schema(extra_scripts: Sequence[tuple[str, str]] = (), root: Path = HERE, release: str = __version__) -> Schema:
    """Read the schema of `release` from `root/sql`, plus the (name, SQL) scripts added by a messaging backend."""
    migrations = _read(root / "sql" / "migrations", "*.sql")
    functions = _read(root / "sql" / "functions", "*.sql")
    views = tuple(part for script in _read(root / "sql" / "views", "*.sql") for part in _views_apart(script))
    backend = tuple(Script(f"backend/{name}", sql) for name, sql in extra_scripts)
    return Schema(migrations, functions + views + backend, release)


def _read(folder: Path, pattern: str) -> tuple[Script, ...]:
    return tuple(
        Script(f"{folder.name}/{path.stem}", path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob(pattern), key=lambda path: path.name)
    )


def _views_apart(script: Script) -> list[Script]:
    """Split a file into one script per view, so that an unchanged view is not replaced."""
    views = [*_VIEW.finditer(script.sql)]
    ends = [view.start() for view in views[1:]] + [len(script.sql)]
    return [Script(f"views/{view[1]}", script.sql[view.start() : end]) for view, end in zip(views, ends, strict=True)]
