"""Recommended number of workers per namespace, from its backlog and its throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.errors import UsageError
from tasker.lifecycle.scaling import BY_DEFAULT, NamespaceLoad, ScalingSettings, recommend_workers

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
    found = await connection.call("tasker.scaling_v1(%s::jsonb)", args)
    return [advice(NamespaceLoad(**each), settings) for each in found["namespaces"]]


def advice(load: NamespaceLoad, settings: ScalingSettings) -> ScalingAdvice:
    found, seconds = recommend_workers(load, settings), load.clears_in_seconds
    return ScalingAdvice(
        namespace=load.namespace,
        recommended_workers=found.workers,
        reason=found.reason,
        workers=load.workers,
        slots=load.slots,
        in_hand=load.in_hand,
        depth=load.depth,
        drain_per_second=load.drain_per_second,
        step_seconds=load.step_seconds,
        clears_in_seconds=None if seconds is None else round(seconds, 3),
    )
