"""Whether the rows keep the engine's promises, and whether messages and workers fit the rows."""

from __future__ import annotations

from itertools import groupby

from tasker.contracts.dataclasses import dataclass
from tasker.db.queries import query
from tasker.services.engine.calls import Engine

WAITED_SECONDS = 30.0
"""Enqueued for longer than this a step should have a message: sweeps look after some seconds."""
EXAMPLES = 3
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
class Finding:
    """Something that does not fit: what, how often, some of it, and who repairs it; '' where nothing is to repair."""

    what: str
    count: int
    examples: tuple[str, ...]
    repaired_by: str

    @property
    def is_broken(self) -> bool:
        """True for what does not mend by itself."""
        return self.repaired_by == NOBODY


class Checks:
    """Reads everything and changes nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def run(self) -> list[Finding]:
        """All findings, the broken promises first. Raises `DatabaseError`, `MessagingError`."""
        return [*await self._violations(), *await self._without_message(), *await self._unheld(), *await self._aside()]

    async def _violations(self) -> list[Finding]:
        rows = await self._engine.connection.execute(query("checks", "violations"))
        by_rule = (
            (rule, [" ".join(filter(None, row[1:])) for row in group])
            for rule, group in groupby(rows, lambda row: row[0])
        )
        return [_finding(str(rule), found, SWEEP if rule in MENDED else NOBODY) for rule, found in by_rule]

    async def _without_message(self) -> list[Finding]:
        rows = await self._engine.connection.execute(query("checks", "enqueued"), {"seconds": WAITED_SECONDS})
        found = [(namespace, await self._engine.missing_hints(namespace, steps)) for namespace, steps in rows]
        return [_finding(f"enqueued in {name}, without a message", steps, SWEEP) for name, steps in found if steps]

    async def _unheld(self) -> list[Finding]:
        rows = await self._engine.connection.execute(query("checks", "unheld"))
        return [_finding("in progress for a worker that is not alive", [row[0] for row in rows], SWEEP)] if rows else []

    async def _aside(self) -> list[Finding]:
        rows = await self._engine.connection.execute(query("checks", "set_aside"))
        return [Finding(f"messages set aside: {what}", count, (f"last at {at}",), "") for what, count, at in rows]


def _finding(what: str, found: list[str], repaired_by: str) -> Finding:
    return Finding(what, len(found), tuple(found[:EXAMPLES]), repaired_by)
