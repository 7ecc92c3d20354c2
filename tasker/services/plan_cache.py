"""Compiled templates in the memory of a process, and how they fare there."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import Plan


@dataclass(slots=True)
class CachedPlan:
    """A plan, the hash that is stored with it, since when it is kept (seconds since 1970), and how often it was asked
    for since then."""

    plan: Plan
    stored: str
    since: float
    asked: int = 0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds and has done since the process started. Times are seconds since 1970."""

    total_entries: int
    hits: int
    misses: int
    evictions: int
    """Plans that made room for others."""
    last_maintenance: float | None
    """When it was last emptied, or one of its plans read anew: somebody asked for that, or a connection was lost."""


class PlanCache:
    """Plans by their identifier; beyond `most` the least recently used makes room."""

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most, self._clock = most, clock
        self._hits = self._misses = self._evictions = 0
        self._maintained: float | None = None
        self.plans: OrderedDict[int, CachedPlan] = OrderedDict()

    def get(self, template_id: int) -> Plan | None:
        """The plan, if it is here."""
        found = self.plans.get(template_id)
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        found.asked += 1
        self.plans.move_to_end(template_id)
        return found.plan

    def keep(self, template_id: int, plan: Plan, stored: str) -> None:
        """Have it here from now on, with the hash that is stored with it."""
        self.plans[template_id] = CachedPlan(plan, stored, self._clock())
        self.plans.move_to_end(template_id)
        if len(self.plans) > self._most:
            self._evictions += 1
            self.plans.popitem(last=False)

    def clear(self, template_id: int | None = None) -> int:
        """Forget one, or all; how many were here."""
        gone = len(self.plans) if template_id is None else int(template_id in self.plans)
        self._maintained = self._clock()
        if template_id is None:
            self.plans.clear()
        else:
            self.plans.pop(template_id, None)
        return gone

    def stats(self) -> CacheStats:
        """The numbers of now."""
        return CacheStats(len(self.plans), self._hits, self._misses, self._evictions, self._maintained)

    def of(self, plan: Plan) -> CachedPlan | None:
        """The entry of this content, if it is here."""
        return next((each for each in self.plans.values() if each.plan.hash == plan.hash), None)

    @property
    def oldest_seconds(self) -> float:
        """How long the plan is here that was kept first; 0 without one."""
        return max((self._clock() - each.since for each in self.plans.values()), default=0.0)

    @property
    def asked_each(self) -> float:
        """How often a plan that is here was asked for, on average."""
        return sum(each.asked for each in self.plans.values()) / max(1, len(self.plans))
