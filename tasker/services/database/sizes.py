"""Sizes of the database's tables and of a task, and the most expensive statements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import DatabaseError, DatabaseUnavailable

TASKS = "tasker.tasks"
NOT_INSTALLED = (
    "statement statistics are disabled: add pg_stat_statements to shared_preload_libraries, "
    "and run in this database: create extension pg_stat_statements"
)


@dataclass(frozen=True, slots=True)
class TableSize:
    """Size of a table in bytes, and the server's last count of rows; `dead` rows wait for a vacuum."""

    table: str
    table_bytes: int
    index_bytes: int
    rows: int
    dead: int
    vacuumed_at: datetime | None

    @property
    def bytes(self) -> int:
        """Bytes of the rows and the indexes."""
        return self.table_bytes + self.index_bytes


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the engine's tables, largest first."""

    tables: Sequence[TableSize]

    @property
    def bytes(self) -> int:
        """Bytes of all tables."""
        return sum(each.bytes for each in self.tables)

    @property
    def tasks(self) -> int:
        """Number of tasks, as the server last counted them."""
        return sum(each.rows for each in self.tables if each.table == TASKS)

    @property
    def bytes_per_task(self) -> int:
        """Average bytes in the database per task; 0 without tasks."""
        return round(self.bytes / self.tasks) if self.tasks else 0


@dataclass(frozen=True, slots=True)
class CostlyStatement:
    """Statement on the engine's tables, with its cost since the start of the server's statistics."""

    calls: int
    total_ms: float
    mean_ms: float
    rows: int
    statement: str


@dataclass(frozen=True, slots=True)
class CostlyStatements:
    """Statements with the largest total time; `missing` is why they are unknown."""

    statements: Sequence[CostlyStatement] = ()
    missing: str | None = None


class DatabaseSizes:
    """Reader of the server's statistics; it reads no rows of the tables."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def read(self) -> Sizes:
        """Return the current sizes. Raises `DatabaseError`."""
        return Sizes([TableSize(*row) for row in await self._connection.execute(query("database", "sizes"))])

    async def costly(self, *, limit: int = 10) -> CostlyStatements:
        """Return the statements with the largest total time, if the server has pg_stat_statements.

        Raises `DatabaseUnavailable`.
        """
        found = await self._connection.execute(query("database", "statistics_schema"))
        if not found:
            return CostlyStatements((), NOT_INSTALLED)
        statement = query("database", "costly").replace("{schema}", found[0][0])
        try:
            rows = await self._connection.execute(statement, {"limit": limit})
        except DatabaseUnavailable:
            raise
        except DatabaseError as error:
            return CostlyStatements((), f"pg_stat_statements cannot be read: {error}")
        return CostlyStatements([CostlyStatement(*row) for row in rows])
