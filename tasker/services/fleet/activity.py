"""What has happened lately, in slices of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamespaceActivity:
    """Tasks of a namespace in each slice, from the oldest on; its open tasks, and dead letters that wait for somebody.

    A task is `running` while a step of it is in the queue or at a worker, else `waiting`.
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
    """A handler that workers were asked for and do not have; so many `steps` wait for it, the first `since` then."""

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
        """Steps of tasks of this time that have ended well, on average."""
        return self.steps_ended / self.seconds if self.seconds else 0.0


def activity(row: Mapping[str, Any]) -> Activity:
    """From the answer of `tasker.activity_v1`."""
    unserved = [Unserved(**{**each, "since": datetime.fromisoformat(each["since"])}) for each in row["unserved"]]
    namespaces = [NamespaceActivity(**each) for each in row["namespaces"]]
    at = datetime.fromisoformat(row["at"])
    return Activity(**{**row, "at": at, "namespaces": namespaces, "unserved": unserved})
