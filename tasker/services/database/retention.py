"""Retention: finished tasks older than their rule allows are deleted in slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.retention import SLICE_STEPS
from tasker.contracts.retention import RetentionRule
from tasker.db.connection import Statements
from tasker.services.by_hand import audited
from tasker.services.engine.encoding import to_json

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

    def __init__(self, connection: Statements, *, slice_steps: int = SLICE_STEPS) -> None:
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
        return [each.pruned for each in targets if each.pruned.tasks or each.pruned.kept]

    async def may_delete(self) -> bool:
        """Return True if the role of this process may delete tasks (`tasker db roles`). Raises `DatabaseError`."""
        ((may,),) = await self._connection.execute(MAY_DELETE)
        return bool(may)

    async def targets(self, rules: Sequence[RetentionRule]) -> list[PruneTarget]:
        """Return the targets in which something may be deleted; reads one row per template. Raises `DatabaseError`."""
        args = {"rules": [asdict(rule) for rule in rules], "least_ms": LEAST_MS}
        found = (await self._call("prunable", args))["targets"]
        return [
            PruneTarget(
                {name: row[name] for name in _ASKED}, Pruned(**{name: row[name] for name in _TOLD}, tasks=0, steps=0)
            )
            for row in found
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
