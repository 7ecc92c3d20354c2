"""How many workers are recommended: more at once where the queue is deep or slow, fewer one by one, within bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.operations.analytics import BY_DEFAULT, ScalingSettings
from tasker.services.fleet.scaling import NamespaceLoad, recommend_workers

QUIET = NamespaceLoad("shop", depth=0, workers=4, slots=40, in_hand=0)

FULL = replace(QUIET, in_hand=32, step_seconds=1)


@pytest.mark.parametrize(
    ("load", "workers", "reason"),
    [
        (replace(QUIET, depth=250), 11, "250 steps wait"),
        (replace(QUIET, depth=101), 5, "101 steps wait"),
        (replace(QUIET, depth=100), 4, "enough for what waits"),
        (replace(QUIET, depth=10), 4, "enough for what waits"),
        (replace(QUIET, depth=9), 3, "only 9 steps wait"),
        (replace(QUIET, depth=9_999), 50, "9999 steps wait; no more than max_workers"),
        (replace(QUIET, workers=2), 2, "only 0 steps wait; no fewer than min_workers"),
        (replace(QUIET, depth=3, workers=0, slots=0), 2, "3 steps wait without a worker; no fewer than min_workers"),
        (replace(QUIET, in_hand=31), 4, "all of them have something to do"),
        (replace(QUIET, in_hand=30), 3, "only 0 steps wait"),
        (replace(QUIET, steady_seconds=299), 4, "a worker has started or stopped lately"),
        (replace(QUIET, steady_seconds=300), 3, "only 0 steps wait"),
        (replace(QUIET, depth=250, steady_seconds=1), 11, "250 steps wait"),
    ],
)
def test_by_the_defaults(load: NamespaceLoad, workers: int, reason: str) -> None:
    found = recommend_workers(load)
    assert (found.workers, found.reason) == (workers, reason)


@pytest.mark.parametrize(
    ("load", "workers", "reason"),
    [
        # 4 workers at their limit end 40 steps a second: 1,200 take 30 seconds
        (replace(FULL, depth=1_200, drain_per_second=40), 4, "1200 steps wait, which takes 30 s"),
        (replace(FULL, depth=12_000, drain_per_second=40), 20, "12000 steps wait, which takes 300 s"),
        # they had nothing to do for most of the last minutes, and steps go faster than that
        (replace(FULL, depth=1_200, drain_per_second=0.1), 8, "1200 steps wait, which takes 120 s"),
        # steps that take no millisecond
        (replace(QUIET, depth=120_000, step_seconds=0.0), 4, "120000 steps wait, which takes 3 s"),
        # nothing has ended lately, but steps are known to take 20 seconds: 40 slots end 2 a second
        (replace(QUIET, depth=90, step_seconds=20), 4, "enough for what waits"),
        (replace(QUIET, depth=240, step_seconds=20), 8, "240 steps wait, which takes 120 s"),
        # what ends where little is asked for tells nothing of what they can do
        (replace(QUIET, depth=12, drain_per_second=0.01, step_seconds=1), 4, "enough for what waits"),
        # few steps, but slow ones
        (replace(QUIET, depth=50, step_seconds=120), 10, "50 steps wait, which takes 150 s"),
        (replace(QUIET, depth=5, step_seconds=1), 3, "only 5 steps wait"),
    ],
)
def test_by_how_fast_steps_go(load: NamespaceLoad, workers: int, reason: str) -> None:
    found = recommend_workers(load)
    assert (found.workers, found.reason) == (workers, reason)


def test_a_fleet_may_go_to_nothing_where_nothing_waits_and_comes_back_for_one_step() -> None:
    from_nothing = ScalingSettings(min_workers=0)
    one = NamespaceLoad("shop", depth=0, workers=1, slots=10, in_hand=0)
    assert recommend_workers(one, from_nothing).workers == 0
    assert recommend_workers(replace(one, depth=1), from_nothing).workers == 1
    assert recommend_workers(replace(one, in_hand=1), from_nothing).workers == 1
    assert recommend_workers(NamespaceLoad("shop", 1, 0, 0, 0), from_nothing).workers == 1
    assert recommend_workers(NamespaceLoad("shop", 0, 0, 0, 0), from_nothing).workers == 0


LOADS = st.builds(
    NamespaceLoad,
    st.just("shop"),
    st.integers(0, 10**7),
    st.integers(0, 100),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.none() | st.floats(0, 1e5),
    st.none() | st.floats(0, 1e5),
    st.none() | st.floats(0, 1e5),
)


@given(LOADS, st.integers(0, 20), st.integers(0, 80))
def test_it_never_leaves_its_bounds(load: NamespaceLoad, low: int, more: int) -> None:
    settings = replace(BY_DEFAULT, min_workers=low, max_workers=low + more)
    assert low <= recommend_workers(load, settings).workers <= low + more


@given(st.integers(0, 5_000), st.integers(1, 50))
def test_who_follows_it_comes_to_rest(depth: int, workers: int) -> None:
    """The same depth again and again: up at once, down one by one, and then nothing changes any more."""
    seen = [workers]
    for _ in range(60):
        load = NamespaceLoad("shop", depth, seen[-1], 10 * seen[-1], 0)
        seen.append(recommend_workers(load).workers)
    assert seen[-1] == seen[-2]
    assert not any(after > before for before, after in pairwise(seen[1:]))
