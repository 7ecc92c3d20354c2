"""What takes room in the database, and how much of it a task costs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import DatabaseError, DatabaseUnavailable

TASKS = "tasker.tasks"
NOT_INSTALLED = (
    "the server does not count statements: add pg_stat_statements to shared_preload_libraries, "
    "and run in this database: create extension pg_stat_statements"
)


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


@dataclass(frozen=True, slots=True)
class CostlyStatement:
    """A statement about the engine's tables, and what it has cost since the server's statistics began."""

    calls: int
    total_ms: float
    mean_ms: float
    rows: int
    statement: str


@dataclass(frozen=True, slots=True)
class CostlyStatements:
    """Those that took the server most time together; `missing` says why nothing is known of them."""

    statements: Sequence[CostlyStatement] = ()
    missing: str | None = None


class DatabaseSizes:
    """Reads the server's statistics, no rows."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def read(self) -> Sizes:
        """What takes room now. Raises `DatabaseError`."""
        return Sizes([TableSize(*row) for row in await self._connection.execute(query("care", "sizes"))])

    async def costly(self, *, limit: int = 10) -> CostlyStatements:
        """The statements that took most time, where the server counts them (pg_stat_statements). Raises
        `DatabaseUnavailable`."""
        found = await self._connection.execute(query("care", "statistics_schema"))
        if not found:
            return CostlyStatements((), NOT_INSTALLED)
        statement = query("care", "costly").replace("{schema}", found[0][0])
        try:
            rows = await self._connection.execute(statement, {"limit": limit})
        except DatabaseUnavailable:
            raise
        except DatabaseError as error:
            return CostlyStatements((), f"pg_stat_statements cannot be read: {error}")
        return CostlyStatements([CostlyStatement(*row) for row in rows])
