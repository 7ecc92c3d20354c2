"""Backpressure at submission: a namespace's queue depth, its drain rate, and the decision to accept new work.

A refused task is not created: nothing is lost, and the caller learns when to submit again.
"""

from __future__ import annotations

import logging
from collections import Counter

from tasker.clock import Clock
from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine
from tasker.errors import Overloaded
from tasker.resilience.pressure import DrainRate, Level, depth_level, depth_limit, retry_after
from tasker.services.submission.lost_commit import retry_read_once
from tasker.settings.queues import DepthThresholds
from tasker.template.names import MAX_COUNT
from tasker.template.plan import Plan

DEPTH_SECONDS = 1.0
"""Seconds for which a depth reading is reused, together with the work added since, while there is room."""
_SEVERITY = {
    Level.NORMAL: logging.INFO,
    Level.WARNING: logging.WARNING,
    Level.CRITICAL: logging.WARNING,
    Level.OVERFLOW: logging.ERROR,
}
_log = logging.getLogger("tasker.submission")


@dataclass(frozen=True, slots=True)
class NamespacePressure:
    """Ready work of a namespace at one moment."""

    namespace: str
    level: Level
    enqueued: int
    held: int
    """Ready steps beyond the enqueue window, except paused ones (`paused`)."""
    paused: int
    per_second: float | None
    """Steps that leave the queue per second, measured by this process; None until it has two readings."""
    retry_after: int | None
    """Seconds after which to submit again; None if new work of normal priority is accepted."""

    @property
    def depth(self) -> int:
        """Number of all ready steps."""
        return self.enqueued + self.held + self.paused

    @property
    def accepts(self) -> bool:
        """True if new work of every priority is accepted."""
        return self.retry_after is None


@dataclass(slots=True)
class QueueDepth:
    """Last reading of a namespace, and the work that this process has added since."""

    at: float
    found: NamespacePressure
    added: int = 0


class SubmissionAdmission:
    """Admission control of submissions. It reads the depth once per namespace and second, more often near the limit."""

    def __init__(self, engine: Engine, clock: Clock, limits: DepthThresholds) -> None:
        self._engine, self._clock, self._limits = engine, clock, limits
        self._rates: dict[str, DrainRate] = {}
        self._depths: dict[str, QueueDepth] = {}
        self.refused: Counter[str] = Counter()
        """Refusals by namespace."""
        self.overflows: Counter[str] = Counter()
        """Number of times a namespace rose to the level `overflow`."""

    async def admission(self, namespace: str) -> NamespacePressure:
        """Read the current depth of the namespace, and whether it accepts new work."""
        pressure = await self._read_depth(namespace)
        before = self._depths.get(namespace)
        self._depths[namespace] = QueueDepth(self._clock.monotonic(), pressure)
        self._log_level(pressure, before.found.level if before else Level.NORMAL)
        return pressure

    async def _read_depth(self, namespace: str) -> NamespacePressure:
        args = {"namespace": namespace, "limit": min(self._limits.overflow_threshold * 2, MAX_COUNT)}
        counts = await retry_read_once(lambda: self._engine.read("depth", args))
        rate = self._rates.setdefault(namespace, DrainRate())
        rate.read(self._clock.monotonic(), counts["taken"])
        depth = counts["enqueued"] + counts["held"] + counts["paused"]
        return NamespacePressure(
            namespace,
            depth_level(self._limits, depth),
            counts["enqueued"],
            counts["held"],
            counts["paused"],
            rate.per_second,
            retry_after(self._limits, depth, rate.per_second),
        )

    async def require(self, plan: Plan, tasks: int = 1, *, priority: int = 0) -> None:
        """Return if new tasks of this plan are accepted. Raises `Overloaded`, which says when to submit again.

        `priority` is the lowest of these tasks.
        """
        if not self._has_room(plan.namespace):
            pressure = await self.admission(plan.namespace)
            seconds = retry_after(self._limits, pressure.depth, pressure.per_second, priority)
            if seconds is not None:
                self.refused[plan.namespace] += 1
                raise self._refusal(pressure, depth_limit(self._limits, priority), seconds)
        self._depths[plan.namespace].added += tasks * sum(not step.depends_on for step in plan.steps)

    def _has_room(self, namespace: str) -> bool:
        depth = self._depths.get(namespace)
        if depth is None or self._clock.monotonic() - depth.at >= DEPTH_SECONDS:
            return False
        return depth.found.depth + depth.added < self._limits.critical_threshold

    def _refusal(self, pressure: NamespacePressure, limit: int, seconds: int) -> Overloaded:
        return Overloaded(
            f"the namespace {pressure.namespace} has {pressure.depth} ready steps, the limit is {limit}",
            retry_after=seconds,
            hint=f"submit again in {seconds} s; more workers drain it faster",
        )

    def _log_level(self, pressure: NamespacePressure, before: Level) -> None:
        if pressure.level is before:
            return
        self.overflows[pressure.namespace] += pressure.level is Level.OVERFLOW
        _log.log(
            _SEVERITY[pressure.level],
            "queue_depth namespace=%s level=%s depth=%s critical=%s overflow=%s",
            pressure.namespace,
            pressure.level,
            pressure.depth,
            self._limits.critical_threshold,
            self._limits.overflow_threshold,
        )
