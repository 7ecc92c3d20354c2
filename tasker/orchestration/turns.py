"""Turns of jobs that cost the same in every process, so that one process at a time does them for all."""

from __future__ import annotations

from collections.abc import Callable

from tasker.contracts.backoff import between
from tasker.contracts.clock import Clock, Random
from tasker.services.engine.calls import Answer, Engine

KEPT_TURNS = 12
"""Number of turns in a row before another process gets one.

A sweep checks several times before it repairs, but a process of another release may repair what this one cannot.
"""


class ExclusiveTurns:
    """This process's part in taking turns, one every `seconds`.

    The process that had the last turn asks first for the next one. The others ask later, so a process that died is
    replaced within one and a half intervals of its last turn. Each asks about once an interval; `told` gets every
    answer.
    """

    def __init__(
        self,
        engine: Engine,
        kind: str,
        clock: Clock,
        random: Random,
        seconds: float,
        told: Callable[[Answer], None] = lambda _: None,
    ) -> None:
        self._engine, self._clock, self._random, self._seconds = engine, clock, random, seconds
        self._told = told
        self._kind = f"{kind} {engine.messaging.provider_name()}"
        self._taken = 0
        self._renewed_at = 0.0

    async def take(self) -> tuple[bool, float]:
        """Return whether it is this process's turn, and after how many seconds to ask again."""
        answer = await self._ask(0.7 * self._seconds)
        if not answer["mine"]:
            self._taken = 0
            return False, self._seconds * between(1.25, 1.5, self._random.random()) - answer["since_ms"] / 1000
        self._renewed_at = self._clock.monotonic()
        self._taken = (self._taken + 1) % KEPT_TURNS
        least = 0.75 if self._taken else 1.5
        return True, self._seconds * between(least, least + 0.5, self._random.random())

    async def keep(self) -> None:
        """Extend the turn, so that no other process begins meanwhile."""
        if self._clock.monotonic() >= self._renewed_at + self._seconds / 2:
            self._renewed_at = self._clock.monotonic()
            await self._ask(0)

    async def _ask(self, after_seconds: float) -> Answer:
        answer = await self._engine.read("take_turn", {"kind": self._kind, "after_ms": round(after_seconds * 1000)})
        self._told(answer)
        return answer
