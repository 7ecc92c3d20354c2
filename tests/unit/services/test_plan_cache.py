"""The cache of compiled templates: what it counts, and whom it lets go."""

from __future__ import annotations

from itertools import count

from tasker.engine.plans import CacheStats, PlanCache
from tests.support.random_plans import Spec, build_plan


def test_the_least_recently_used_makes_room_and_all_is_counted() -> None:
    ticks = count(100)
    cache, plan = PlanCache(2, lambda: float(next(ticks))), build_plan(Spec("a"))
    assert cache.get(1) is None
    for number in (1, 2):
        cache.keep(number, plan, plan.hash)
    assert cache.get(1) is plan
    cache.keep(3, plan, plan.hash)
    assert (list(cache.plans), cache.get(2)) == ([1, 3], None)
    assert cache.stats() == CacheStats(total_entries=2, hits=1, misses=2, evictions=1, last_maintenance=None)
    assert (cache.asked_each, cache.oldest_seconds) == (0.5, 3.0)


def test_forgetting_one_or_all_is_maintenance() -> None:
    cache, plan = PlanCache(2, lambda: 7.0), build_plan(Spec("a"))
    for number in (1, 2):
        cache.keep(number, plan, plan.hash)
    assert cache.of(plan) is cache.plans[1]
    assert (cache.clear(1), cache.clear(1), cache.clear()) == (1, 0, 1)
    assert (cache.of(plan), cache.stats().last_maintenance, cache.asked_each) == (None, 7.0, 0.0)
