"""In-memory cache of compiled templates, with its statistics."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import Plan


@dataclass(slots=True)
class CachedPlan:
    """Cached plan with its stored hash, the time it was cached (seconds since 1970), and the number of reads since
    then."""

    plan: Plan
    stored: str
    since: float
    asked: int = 0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """State and statistics of a cache since the process started. Times are seconds since 1970."""

    total_entries: int
    hits: int
    misses: int
    evictions: int
    """Number of plans dropped to make room for others."""
    last_maintenance: float | None
    """Time of the last `clear`, of all or one plan: on request, or after a lost connection."""


class PlanCache:
    """Cache of plans by id; beyond `most` the least recently used is dropped."""

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most, self._clock = most, clock
        self._hits = self._misses = self._evictions = 0
        self._maintained: float | None = None
        self.plans: OrderedDict[int, CachedPlan] = OrderedDict()

    def get(self, template_id: int) -> Plan | None:
        found = self.plans.get(template_id)
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        found.asked += 1
        self.plans.move_to_end(template_id)
        return found.plan

    def keep(self, template_id: int, plan: Plan, stored: str) -> None:
        """Cache the plan, with the hash that is stored with it."""
        self.plans[template_id] = CachedPlan(plan, stored, self._clock())
        self.plans.move_to_end(template_id)
        if len(self.plans) > self._most:
            self._evictions += 1
            self.plans.popitem(last=False)

    def clear(self, template_id: int | None = None) -> int:
        """Drop one plan, or all, and return the number dropped."""
        gone = len(self.plans) if template_id is None else int(template_id in self.plans)
        self._maintained = self._clock()
        if template_id is None:
            self.plans.clear()
        else:
            self.plans.pop(template_id, None)
        return gone

    def stats(self) -> CacheStats:
        return CacheStats(len(self.plans), self._hits, self._misses, self._evictions, self._maintained)

    def of(self, plan: Plan) -> CachedPlan | None:
        """Return the cache entry of a plan with this content, or None."""
        return next((each for each in self.plans.values() if each.plan.hash == plan.hash), None)

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest entry in seconds; 0 for an empty cache."""
        return max((self._clock() - each.since for each in self.plans.values()), default=0.0)

    @property
    def asked_each(self) -> float:
        """Average number of reads of a cached plan."""
        return sum(each.asked for each in self.plans.values()) / max(1, len(self.plans))
