"""Limits of what runs at the same time, with what runs and waits under each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine

LIMITS, KEYS = 200, 20
"""Numbers of limits in a list, and of keys of each."""


@dataclass(frozen=True, slots=True)
class KeyUse:
    """Use of a limit for one value of its key: numbers of steps, counted to 1,000. `since` is when the longest
    running one got its permit."""

    value: str
    running: int
    waiting: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class LimitUse:
    """Use of a limit: numbers of steps, counted to 10,000.

    `most` steps run at the same time for each value of the key, or `rate` attempts per second begin, `burst` of them at
    once after a pause; `running` are then those that wait for a worker. `keys` are those for which steps
    wait, then others; None: they are not shown.
    """

    name: str
    most: int | None
    rate: float | None
    burst: float | None
    changed_at: datetime
    running: int
    waiting: int
    keys: Sequence[KeyUse] | None
    more_keys: bool

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Self:
        """Parse a limit of the answer of `tasker.limits_v1`, or of the API."""
        keys = None if row["keys"] is None else tuple(map(_key, row["keys"]))
        return cls(**{**row, "changed_at": datetime.fromisoformat(row["changed_at"]), "keys": keys})

    def without_keys(self) -> LimitUse:
        """Return the same without the values of its keys, which are parts of tasks' inputs and results."""
        return replace(self, keys=None, more_keys=False)


def _key(row: Mapping[str, Any]) -> KeyUse:
    return KeyUse(**{**row, "since": datetime.fromisoformat(row["since"]) if row["since"] else None})


class Limits:
    """Use cases of limits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self, name: str | None = None, *, keys: int = KEYS) -> Sequence[LimitUse]:
        """Return the limits by name: at most 200 of them, each with up to `keys` values of its key."""
        args = {"name": name, "limits": LIMITS, "keys": keys}
        return [LimitUse.parse(row) for row in (await self._engine.read("limits", args))["limits"]]
