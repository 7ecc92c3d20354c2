"""Recent activity in time slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamespaceActivity:
    """Activity of a namespace: tasks per slice, oldest first, its open tasks, and dead letters that need an operator.

    A task is `running` while one of its steps is enqueued or claimed by a worker, else `waiting`.
    """

    namespace: str
    submitted: Sequence[int]
    ended: Sequence[int]
    failed: Sequence[int]
    running: int
    waiting: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Unserved:
    """Handler that workers lack although they received its steps; `steps` wait for it, the first `since` then."""

    callable: str
    namespace: str
    steps: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Activity:
    """The last `seconds` in equal `slices`, with those `namespaces` first in which something happens.

    Waits are from the queue to a worker; None: no step has waited.
    `retries_due`: steps that run again within the next hour, counted to 10,000.
    """

    at: datetime
    seconds: float
    slices: int
    namespaces: Sequence[NamespaceActivity]
    steps_ended: int
    wait_p50_ms: float | None
    wait_p95_ms: float | None
    retries_due: int
    unserved: Sequence[Unserved]
    waits_p50_ms: Sequence[float | None] = ()
    waits_p95_ms: Sequence[float | None] = ()
    """Of each slice, from the oldest on."""
    submitted: Sequence[int] = ()
    ended: Sequence[int] = ()
    failed: Sequence[int] = ()
    """Tasks of all namespaces in each slice."""

    @property
    def steps_per_second(self) -> float:
        """Average rate of successfully ended steps, for tasks of this period."""
        return self.steps_ended / self.seconds if self.seconds else 0.0


def activity(row: Mapping[str, Any]) -> Activity:
    """Create the activity from the result of `tasker.activity_v1`."""
    unserved = [Unserved(**{**each, "since": datetime.fromisoformat(each["since"])}) for each in row["unserved"]]
    namespaces = [NamespaceActivity(**each) for each in row["namespaces"]]
    at = datetime.fromisoformat(row["at"])
    return Activity(**{**row, "at": at, "namespaces": namespaces, "unserved": unserved})
