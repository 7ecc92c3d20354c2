"""Advice on the number of workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import ceil
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.errors import UsageError

FULL = 0.8
"""Share of busy slots at which workers count as fully loaded."""
LEAST_SHARE = 0.25
SHORTEST_SECONDS = 0.001
"""Minimum duration of a step: durations are whole milliseconds, so 0 means less than this."""


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """Thresholds of the recommendation. Between the two depths nothing changes."""

    min_workers: int = 2
    max_workers: int = 50
    scale_up_depth: int = 100
    """More workers if more steps wait."""
    scale_down_depth: int = 10
    """One worker less if fewer steps wait."""
    steps_per_worker: int = 25
    """Waiting steps per worker while the speed of the steps is unknown."""
    clear_within_seconds: float = 60.0
    """More workers if the current ones need longer for the waiting steps."""
    cooldown_seconds: float = 300.0
    """Minimum time since a worker started or stopped before fewer are recommended. More are recommended at once."""


BY_DEFAULT = ScalingSettings()


@dataclass(frozen=True, slots=True)
class NamespaceLoad:
    """Load of a namespace. `slots` and `in_hand` are the capacity and the claims of its live `workers` together.

    `drain_per_second` is the recent rate of ended steps and `step_seconds` their average duration; None: no step ended.
    `steady_seconds` is the time since a worker started or stopped; None: unknown.
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
        """Steps per second that one worker can finish; None: unknown.

        Computed from slots and duration. If the slots are full, the observed rate applies, since it includes the time
        between two steps. The observation may have begun while idle, so it counts as no less than a share of the
        computed rate.
        """
        if not (self.workers and self.slots) or self.step_seconds is None:
            return None
        promised = self.slots / self.workers / max(self.step_seconds, SHORTEST_SECONDS)
        if self.drain_per_second is None or self.in_hand < FULL * self.slots:
            return promised
        return min(promised, max(self.drain_per_second / self.workers, promised * LEAST_SHARE))

    @property
    def clears_in_seconds(self) -> float | None:
        """Seconds that the current workers need for the waiting steps; None: unknown."""
        rate = self.per_worker
        return self.depth / (rate * self.workers) if rate else None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Recommended number of workers, and the reason."""

    workers: int
    reason: str


def recommend_workers(load: NamespaceLoad, settings: ScalingSettings = BY_DEFAULT) -> Recommendation:
    """Recommend a number within `min_workers` and `max_workers`: as many more as needed at once, fewer one by one."""
    recommendation = (
        _more(load, settings) or _fewer(load, settings) or Recommendation(load.workers, "enough for what waits")
    )
    workers = max(settings.min_workers, min(settings.max_workers, recommendation.workers))
    if workers == recommendation.workers:
        return recommendation
    bound = "no fewer than min_workers" if workers > recommendation.workers else "no more than max_workers"
    return Recommendation(workers, f"{recommendation.reason}; {bound}")


def _more(load: NamespaceLoad, settings: ScalingSettings) -> Recommendation | None:
    seconds = load.clears_in_seconds
    if load.depth and not load.workers:
        return Recommendation(_needed(load, settings), f"{load.depth} steps wait without a worker")
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


WINDOW_SECONDS = 300.0
"""Period from which the rates are computed."""


@dataclass(frozen=True, slots=True)
class ScalingAdvice:
    """Recommended number of workers of a namespace with the reason and its inputs (as in `NamespaceLoad`)."""

    namespace: str
    recommended_workers: int
    reason: str
    workers: int
    slots: int
    in_hand: int
    depth: int
    drain_per_second: float | None
    step_seconds: float | None
    clears_in_seconds: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as a mapping of plain values."""
        return asdict(self)


async def scaling(
    connection: Statements, settings: ScalingSettings = BY_DEFAULT, namespaces: Sequence[str] | None = None
) -> list[ScalingAdvice]:
    """Return the advice for each namespace, or for these `namespaces`, by name.

    Raises `DatabaseError`, `UsageError` for bounds that exclude each other.
    """
    for low, high in (("min_workers", "max_workers"), ("scale_down_depth", "scale_up_depth")):
        if getattr(settings, low) > getattr(settings, high):
            message = f"{low} is {getattr(settings, low)}, and {high} {getattr(settings, high)}"
            raise UsageError(message, hint=f"{low} must be at most {high}")
    args = {"window_seconds": WINDOW_SECONDS} | ({} if namespaces is None else {"namespaces": list(namespaces)})
    answer = await connection.call("tasker.scaling_v1(%s::jsonb)", args)
    return [advice(NamespaceLoad(**load), settings) for load in answer["namespaces"]]


def advice(load: NamespaceLoad, settings: ScalingSettings) -> ScalingAdvice:
    recommendation, seconds = recommend_workers(load, settings), load.clears_in_seconds
    return ScalingAdvice(
        namespace=load.namespace,
        recommended_workers=recommendation.workers,
        reason=recommendation.reason,
        workers=load.workers,
        slots=load.slots,
        in_hand=load.in_hand,
        depth=load.depth,
        drain_per_second=load.drain_per_second,
        step_seconds=load.step_seconds,
        clears_in_seconds=None if seconds is None else round(seconds, 3),
    )
