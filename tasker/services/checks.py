"""Whether the rows keep the engine's promises, and whether messages and workers fit the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from tasker.contracts.dataclasses import dataclass
from tasker.db.queries import query
from tasker.services.engine.calls import Engine

WAITED_SECONDS = 30.0
"""Enqueued for longer than this a step should have a message: sweeps look after some seconds."""
EXAMPLES = 3
SLICE, ENDED_SLICE = 500, 2_000
"""Open tasks that one statement reads, and tasks that have ended."""
FIRST = "00000000-0000-0000-0000-000000000000"
SWEEP = "the next sweep of any process"
NOBODY = "nobody: look at it, and report it"
MENDED = frozenset(
    {
        "ready, not held and not enqueued",
        "held as paused, and no pause holds it",
        "held, and not ready",
        "counter of enqueued steps differs",
    }
)
"""Broken promises that a sweep repairs, some of them once a minute (`tasker.mend_v1`)."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """Something that does not fit: what, how often, some of it, and who repairs it; '' where nothing is to repair."""

    what: str
    count: int
    examples: tuple[str, ...]
    repaired_by: str

    @property
    def is_broken(self) -> bool:
        """True for what does not mend by itself."""
        return self.repaired_by == NOBODY


class TaskChecks:
    """Compare tasks with the engine's promises, some at a time: each statement reads those tasks alone."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def slices(self, which: Literal["open", "ended"], limit: int) -> AsyncIterator[list[str]]:
        """Yield the identifiers of all open or ended tasks, at most `limit` together, the oldest first."""
        after = FIRST
        while tasks := [row[0] for row in await self.rows(which, after=after, limit=limit)]:
            yield tasks
            after = tasks[-1]

    async def without_message(self, tasks: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return by namespace the enqueued steps of these tasks that no message points to."""
        rows = await self.rows("enqueued", tasks=tasks, seconds=WAITED_SECONDS)
        return list((await self._engine.hints_missing_in(dict(rows))).items()) if rows else []

    async def unheld(self, tasks: Sequence[str]) -> list[str]:
        """Return the steps of these tasks that run for a worker which is not alive."""
        return [row[0] for row in await self.rows("unheld", tasks=tasks)]

    async def rows(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query of `checks.sql`."""
        return await self._engine.connection.execute(query("checks", name), params)


class Broken:
    """Violations by rule, a subject once for each: tasks may move between two slices."""

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
    """Reads everything and changes nothing."""

    def __init__(self, engine: Engine) -> None:
        self._tasks = TaskChecks(engine)

    async def run(self) -> list[CheckFinding]:
        """All findings, the broken promises first. Raises `DatabaseError`, `MessagingError`."""
        tasks, broken, unheld = self._tasks, Broken(), list[str]()
        without: dict[str, list[str]] = {}
        broken.add(await tasks.rows("fleet_violations"))
        aside = [
            CheckFinding(f"messages set aside: {what}", count, (f"last at {at}",), "")
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
            *([_finding("in progress for a worker that is not alive", unheld, SWEEP)] if unheld else []),
            *aside,
        ]


def _finding(what: str, found: list[str], repaired_by: str) -> CheckFinding:
    return CheckFinding(what, len(found), tuple(found[:EXAMPLES]), repaired_by)
