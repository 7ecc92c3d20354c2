"""Backpressure at submission: how deep a namespace's work is, how fast it drains, whether more is taken (A-45).

A refused task is not created: nothing is lost, and whoever asked knows when to ask again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasker.contracts.clock import Clock
from tasker.errors import Overloaded
from tasker.lifecycle.pressure import DepthLimits, DrainRate, Level
from tasker.services.engine import Engine


@dataclass(frozen=True, slots=True)
class Pressure:
    """The ready work of a namespace at one moment."""

    namespace: str
    level: Level
    enqueued: int
    held: int
    """Ready steps beyond the enqueue window. Paused ones are not among them: `paused`."""
    paused: int
    per_second: float | None
    """Steps that leave the queue per second, as measured by this process; None until it has looked twice."""
    retry_after: int | None
    """Seconds after which to ask again; None when new work is taken."""

    @property
    def depth(self) -> int:
        """All ready steps."""
        return self.enqueued + self.held + self.paused

    @property
    def accepts(self) -> bool:
        """True when new work is taken."""
        return self.retry_after is None


class Admission:
    """Looks at namespaces and decides. One query for each look; the drain rates are kept between looks."""

    def __init__(self, engine: Engine, clock: Clock, limits: DepthLimits) -> None:
        self._engine, self._clock, self._limits = engine, clock, limits
        self._rates: dict[str, DrainRate] = {}

    async def admission(self, namespace: str) -> Pressure:
        """How the namespace stands, and whether it takes new work."""
        found = await self._engine.read("depth", {"namespace": namespace, "limit": self._limits.overflow * 10})
        rate = self._rates.setdefault(namespace, DrainRate())
        rate.read(self._clock.monotonic(), found["taken"])
        depth = found["enqueued"] + found["held"] + found["paused"]
        return Pressure(
            namespace,
            self._limits.level(depth),
            found["enqueued"],
            found["held"],
            found["paused"],
            rate.per_second,
            self._limits.retry_after(depth, rate.per_second),
        )

    async def require(self, namespace: str) -> None:
        """Return when new work is taken. Raises `Overloaded`, which says when to ask again."""
        found = await self.admission(namespace)
        if found.retry_after is not None:
            raise Overloaded(
                f"the namespace {namespace} has {found.depth} ready steps, the limit is {self._limits.critical}",
                retry_after=found.retry_after,
                hint=f"submit again in {found.retry_after} s; more workers drain it faster",
            )
