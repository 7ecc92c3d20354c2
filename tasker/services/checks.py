"""Consistency checks: the rows against the engine's invariants, and messages and workers against the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from tasker.contracts.dataclasses import dataclass
from tasker.db.queries import query
from tasker.services.engine.calls import Engine

WAITED_SECONDS = 30.0
"""Age of an enqueued step from which it should have a message: sweeps repair a lost one within seconds."""
EXAMPLES = 3
SLICE, ENDED_SLICE = 500, 2_000
"""Number of open and of ended tasks read by one statement."""
FIRST = "00000000-0000-0000-0000-000000000000"
SWEEP = "the next sweep of any process"
NOBODY = "no component repairs it: please report it"
MENDED = frozenset(
    {
        "ready, but neither enqueued nor in the backlog",
        "marked as paused, but no pause applies",
        "in the backlog, but not ready",
        "counter of enqueued steps differs",
    }
)
"""Violated invariants that a sweep repairs, some of them once a minute (`tasker.repair_v1`)."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """Inconsistency: description, count, examples, and the component that repairs it ('' if no repair is needed)."""

    what: str
    count: int
    examples: tuple[str, ...]
    repaired_by: str

    @property
    def is_broken(self) -> bool:
        """True if nothing repairs it automatically."""
        return self.repaired_by == NOBODY


class TaskChecks:
    """Comparison of tasks with the engine's invariants, in slices: each statement reads only the tasks of one slice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def slices(self, which: Literal["open", "ended"], limit: int) -> AsyncIterator[list[str]]:
        """Yield the identifiers of all open or ended tasks, up to `limit` at a time, oldest first."""
        after = FIRST
        while tasks := [row[0] for row in await self.rows(which, after=after, limit=limit)]:
            yield tasks
            after = tasks[-1]

    async def without_message(self, tasks: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return, by namespace, the enqueued steps of these tasks that have no message."""
        rows = await self.rows("enqueued", tasks=tasks, seconds=WAITED_SECONDS)
        return list((await self._engine.hints_missing_in(dict(rows))).items()) if rows else []

    async def unheld(self, tasks: Sequence[str]) -> list[str]:
        """Return the steps of these tasks that are in progress on a worker that is not alive."""
        return [row[0] for row in await self.rows("unheld", tasks=tasks)]

    async def rows(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query of `checks.sql`."""
        return await self._engine.connection.execute(query("doctor", name), params)


class Broken:
    """Violations by rule, without duplicates: a task may appear in two slices."""

    def __init__(self) -> None:
        self._by_rule: dict[str, dict[tuple[str, str], None]] = {}

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows of `violations_v1`."""
        for rule, subject, detail in rows:
            self._by_rule.setdefault(rule, {})[subject or "", detail or ""] = None

    def items(self) -> list[tuple[str, list[str]]]:
        """Return each rule, in alphabetical order, with its subjects and their details."""
        named = sorted(self._by_rule.items())
        return [(rule, [" ".join(filter(None, each)) for each in subjects]) for rule, subjects in named]


class Checks:
    """Read-only consistency checks of all tasks."""

    def __init__(self, engine: Engine) -> None:
        self._tasks = TaskChecks(engine)

    async def run(self) -> list[CheckFinding]:
        """Return all findings, violated invariants first. Raises `DatabaseError`, `MessagingError`."""
        tasks, broken, unheld = self._tasks, Broken(), list[str]()
        without: dict[str, list[str]] = {}
        broken.add(await tasks.rows("fleet_violations"))
        aside = [
            CheckFinding(f"quarantined messages: {what}", count, (f"last at {at}",), "")
            for what, count, at in await tasks.rows("set_aside")
        ]
        async for some in tasks.slices("open", SLICE):
            broken.add(await tasks.rows("violations", tasks=some))
            unheld += await tasks.unheld(some)
            for namespace, steps in await tasks.without_message(some):
                without.setdefault(namespace, []).extend(steps)
        async for some in tasks.slices("ended", ENDED_SLICE):
            broken.add(await tasks.rows("violations", tasks=some))
        return [
            *(_finding(rule, found, SWEEP if rule in MENDED else NOBODY) for rule, found in broken.items()),
            *(_finding(f"enqueued in {name}, without a message", without[name], SWEEP) for name in sorted(without)),
            *([_finding("in progress on a worker that is not alive", unheld, SWEEP)] if unheld else []),
            *aside,
        ]


def _finding(what: str, found: list[str], repaired_by: str) -> CheckFinding:
    return CheckFinding(what, len(found), tuple(found[:EXAMPLES]), repaired_by)
