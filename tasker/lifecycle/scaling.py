"""How many workers a namespace should have: pure; who starts and stops them is somebody else."""

from __future__ import annotations

from math import ceil

from tasker.contracts.dataclasses import dataclass

FULL = 0.8
"""From this share of their slots on workers are at their limit."""
LEAST_SHARE = 0.25
SHORTEST_SECONDS = 0.001
"""Durations are whole milliseconds: what took none took less than this."""


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """When there should be more or fewer workers. Between the two depths nothing changes."""

    min_workers: int = 2
    max_workers: int = 50
    scale_up_depth: int = 100
    """More workers when more steps wait."""
    scale_down_depth: int = 10
    """One worker less when fewer steps wait."""
    steps_per_worker: int = 25
    """So many waiting steps ask for one worker, where nothing is known of how fast they go."""
    clear_within_seconds: float = 60.0
    """More workers when those that there are need longer for what waits."""
    cooldown_seconds: float = 300.0
    """Fewer only when none has started or stopped for so long. More are recommended at once."""


BY_DEFAULT = ScalingSettings()


@dataclass(frozen=True, slots=True)
class NamespaceLoad:
    """What a namespace has to do, and who does it. `slots` and `in_hand` are of its live `workers` together.

    `drain_per_second` steps have ended lately, each ran for `step_seconds`; None: nothing has ended. `steady_seconds`
    ago a worker has started or stopped; None: nothing is known of any.
    """

    namespace: str
    depth: int
    workers: int
    slots: int
    in_hand: int
    drain_per_second: float | None = None
    step_seconds: float | None = None
    steady_seconds: float | None = None

    @property
    def per_worker(self) -> float | None:
        """Steps each second that one worker can end; None: unknown.

        By slots and duration; where the slots are full as seen, which has what lies between two steps in it. What
        was seen began perhaps with nothing to do: it counts for no less than a share of the former.
        """
        if not (self.workers and self.slots) or self.step_seconds is None:
            return None
        promised = self.slots / self.workers / max(self.step_seconds, SHORTEST_SECONDS)
        if self.drain_per_second is None or self.in_hand < FULL * self.slots:
            return promised
        return min(promised, max(self.drain_per_second / self.workers, promised * LEAST_SHARE))

    @property
    def clears_in_seconds(self) -> float | None:
        """How long the workers that there are need for what waits; None: unknown."""
        rate = self.per_worker
        return self.depth / (rate * self.workers) if rate else None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """How many workers there should be, and why."""

    workers: int
    reason: str


def recommend_workers(load: NamespaceLoad, settings: ScalingSettings = BY_DEFAULT) -> Recommendation:
    """Within `min_workers` and `max_workers`; more at once and as many as are needed, fewer one by one."""
    found = _more(load, settings) or _fewer(load, settings) or Recommendation(load.workers, "enough for what waits")
    workers = max(settings.min_workers, min(settings.max_workers, found.workers))
    if workers == found.workers:
        return found
    bound = "no fewer than min_workers" if workers > found.workers else "no more than max_workers"
    return Recommendation(workers, f"{found.reason}; {bound}")


def _more(load: NamespaceLoad, settings: ScalingSettings) -> Recommendation | None:
    seconds = load.clears_in_seconds
    if load.depth and not load.workers:
        return Recommendation(_needed(load, settings), f"{load.depth} steps wait, and nobody works")
    if load.depth <= settings.scale_up_depth and (seconds is None or seconds <= settings.clear_within_seconds):
        return None
    when = "" if seconds is None else f", which takes {seconds:.0f} s"
    return Recommendation(max(load.workers, _needed(load, settings)), f"{load.depth} steps wait{when}")


def _needed(load: NamespaceLoad, settings: ScalingSettings) -> int:
    rate = load.per_worker
    if rate is None:
        return load.depth // settings.steps_per_worker + 1
    return ceil(load.depth / (rate * settings.clear_within_seconds))


def _fewer(load: NamespaceLoad, settings: ScalingSettings) -> Recommendation | None:
    if load.depth >= settings.scale_down_depth or not load.workers:
        return None
    if load.steady_seconds is not None and load.steady_seconds < settings.cooldown_seconds:
        return Recommendation(load.workers, "a worker has started or stopped lately")
    left = load.workers - 1
    if load.in_hand > load.slots * left / load.workers or (left == 0 and load.depth):
        return Recommendation(load.workers, "all of them have something to do")
    return Recommendation(left, f"only {load.depth} steps wait")
