"""What every benchmark stands on: a database, a folder, how much is measured; and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tasker.db import migrate
from tasker.db.database import ensure_database
from tasker.messaging import load_backend

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Conditions:
    """Where and how much. `size` divides the amount of work: 1 for real figures, more for a proof that it runs."""

    url: str
    folder: Path
    backend: str = "pgmq"
    quick: bool = False
    size: int = 1

    def fewer(self, amount: int, least: int) -> int:
        """As much of it as this run has time for."""
        return max(least, amount // (5 if self.quick else 1) // self.size)

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """An empty database with the schema on the same server, dropped at the end; its URL."""
        url = urlsplit(self.url)._replace(path=f"/{name}").geturl()
        ensure_database(url)
        migrate.upgrade(url, load_backend("pgmq", {}).install_sql())
        try:
            yield url
        finally:
            with psycopg.connect(self.url, autocommit=True) as admin:
                admin.execute(f'drop database if exists "{name}" with (force)')


def require_complete(url: str, tasks: Sequence[str]) -> None:
    """Raise `AssertionError` unless each of these tasks is complete: one that failed at once would look quick."""
    with psycopg.connect(url) as database:
        counted = "select count(*) from tasker.tasks where task_uuid = any (%s::uuid[]) and state = 'complete'"
        row = database.execute(counted, (list(tasks),)).fetchone()
    assert row == (len(tasks),), f"{row} of {len(tasks)} tasks are complete"
    assert tasks


@dataclass(frozen=True)
class Figure:
    """One number. `group` names the table it belongs to, `ratio` compares it with the first of its kind in this run."""

    name: str
    unit: str
    value: float
    more: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    ratio: float | None = None
