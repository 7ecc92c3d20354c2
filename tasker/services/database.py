"""Deletion of old tasks, and sizes of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import DatabaseError, DatabaseUnavailable
from tasker.json_values import to_json
from tasker.services.audit import audited
from tasker.settings.database import Retention
from tasker.settings.retention import RetentionRule

LEAST_MS = 3_600_000
"""Minimum age of a deleted task, so that a client that waits for it can still read its result."""

COUNTED_SLICE = 2_000
"""Tasks of one query that counts what would be deleted."""

MAY_DELETE = "select has_table_privilege('tasker.tasks', 'delete')"


@dataclass(frozen=True, slots=True)
class Pruned:
    """Completed or `failed` tasks of a template version that ended before `before` (ISO 8601).

    `tasks` and `steps` were deleted, or would be; `kept` tasks have a pending dead letter or a replay, or were locked.
    """

    namespace: str
    template: str
    version: str
    failed: bool
    before: str
    tasks: int
    steps: int
    kept: int = 0


@dataclass(slots=True)
class PruneTarget:
    """Expired tasks of a template version, and the progress of their deletion."""

    asked: Mapping[str, Any]
    pruned: Pruned
    after: Any = None
    over: bool = False


class RetentionService:
    """Service that deletes finished tasks with all their data, in slices of one transaction each; it can be resumed."""

    def __init__(self, connection: Statements, *, slice_steps: int = Retention.batch_size) -> None:
        self._connection, self._slice_steps = connection, slice_steps

    async def prunable(self, rules: Sequence[RetentionRule]) -> list[Pruned]:
        """Return what `prune` would delete now. Counts every task, slice by slice. Raises `DatabaseError`."""
        targets = await self.targets(rules)
        for target in targets:
            while not target.over:
                await self._go_on("count_prunable", target, slice=COUNTED_SLICE)
        return [target.pruned for target in targets if target.pruned.tasks]

    @audited("App.retention.prune", "_connection", several=True)
    async def prune(self, rules: Sequence[RetentionRule]) -> list[Pruned]:
        """Delete expired tasks and return the counts by template.

        Raises `DatabaseError`; tasks deleted until then stay deleted.
        """
        targets = await self.targets(rules)
        for target in targets:
            while not target.over:
                await self.delete_slice(target)
        return [finished.pruned for finished in targets if finished.pruned.tasks or finished.pruned.kept]

    async def may_delete(self) -> bool:
        """Return True if the role of this process may delete tasks (`tasker db roles`). Raises `DatabaseError`."""
        ((may,),) = await self._connection.execute(MAY_DELETE)
        return bool(may)

    async def targets(self, rules: Sequence[RetentionRule]) -> list[PruneTarget]:
        """Return the targets in which something may be deleted; reads one row per template. Raises `DatabaseError`."""
        args = {"rules": [asdict(rule) for rule in rules], "least_ms": LEAST_MS}
        rows = (await self._call("prunable", args))["targets"]
        return [
            PruneTarget(
                {name: row[name] for name in _ASKED}, Pruned(**{name: row[name] for name in _TOLD}, tasks=0, steps=0)
            )
            for row in rows
        ]

    async def delete_slice(self, target: PruneTarget) -> None:
        """Delete the next tasks of it, of so many steps together, in a transaction. Raises `DatabaseError`."""
        await self._go_on("prune", target, steps=self._slice_steps)

    async def _go_on(self, function: str, target: PruneTarget, **size: int) -> None:
        answer = await self._call(function, {**target.asked, **size, "after": target.after})
        sums = {name: getattr(target.pruned, name) + answer[name] for name in ("tasks", "steps", "kept")}
        target.pruned, target.after = replace(target.pruned, **sums), answer["after"]
        target.over = target.after is None

    async def _call(self, function: str, args: Mapping[str, Any]) -> dict[str, Any]:
        return await self._connection.call(f"tasker.{function}_v1(%s::jsonb)", to_json(args))


_ASKED = ("named_task_uuid", "failed", "before", "pending_before")
_TOLD = ("namespace", "template", "version", "failed", "before")


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
        return sum(table.bytes for table in self.tables)

    @property
    def tasks(self) -> int:
        """Number of tasks, as the server last counted them."""
        return sum(table.rows for table in self.tables if table.table == TASKS)

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
        schema_rows = await self._connection.execute(query("database", "statistics_schema"))
        if not schema_rows:
            return CostlyStatements((), NOT_INSTALLED)
        statement = query("database", "costly").replace("{schema}", schema_rows[0][0])
        try:
            rows = await self._connection.execute(statement, {"limit": limit})
        except DatabaseUnavailable:
            raise
        except DatabaseError as error:
            return CostlyStatements((), f"pg_stat_statements cannot be read: {error}")
        return CostlyStatements([CostlyStatement(*row) for row in rows])
