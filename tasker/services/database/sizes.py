"""What takes room in the database, and how much of it a task costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tasker.db.connection import Statements
from tasker.db.queries import query

TASKS = "tasker.tasks"


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table: bytes, and rows as the server last counted them; `dead` ones wait for a vacuum."""

    table: str
    table_bytes: int
    index_bytes: int
    rows: int
    dead: int
    vacuumed_at: datetime | None

    @property
    def bytes(self) -> int:
        """Of its rows and its indexes."""
        return self.table_bytes + self.index_bytes


@dataclass(frozen=True, slots=True)
class Sizes:
    """The tables of the engine, the largest first."""

    tables: Sequence[TableSize]

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return sum(each.bytes for each in self.tables)

    @property
    def tasks(self) -> int:
        """Tasks that there are, as the server last counted them."""
        return sum(each.rows for each in self.tables if each.table == TASKS)

    @property
    def bytes_per_task(self) -> int:
        """By how much the database grows with each task; 0 without any."""
        return round(self.bytes / self.tasks) if self.tasks else 0


class DatabaseSizes:
    """Reads the server's statistics, no rows."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def read(self) -> Sizes:
        """What takes room now. Raises `DatabaseError`."""
        return Sizes([TableSize(*row) for row in await self._connection.execute(query("care", "sizes"))])
