"""What workers are recommended by is what is in the rows."""

from __future__ import annotations

import asyncio

import pytest

from tasker import App
from tasker.errors import UsageError
from tasker.operations.analytics import ScalingSettings
from tasker.views.analytics import ScalingAdvice
from tests.integration.engine.fleet.conftest import Watched, over_http
from tests.support.command_line import invoke
from tests.support.engine_fixture import ok


def advised(watched: Watched, **settings: float) -> ScalingAdvice:
    async def ask() -> ScalingAdvice:
        async with App(watched.lab.url, work=False) as app:
            found = await app.analytics.scaling(ScalingSettings(**settings))  # type: ignore[arg-type]
            return next(each for each in found if each.namespace == watched.lab.namespace)

    return asyncio.run(ask())


def test_waiting_steps_and_workers_are_counted(watched: Watched) -> None:
    lab = watched.lab
    watched.at_work(lab.one, "w1")
    lab.window = 2
    lab.submit(lab.chain(1), *({} for _ in range(5)))
    found = advised(watched, min_workers=0, scale_up_depth=4, scale_down_depth=1, steps_per_worker=2)
    assert (found.depth, found.workers, found.slots, found.in_hand) == (5, 1, 10, 0)
    assert (found.drain_per_second, found.step_seconds, found.recommended_workers) == (None, None, 3)

    lab.one.core("pause", {"namespace": lab.namespace, "actor": "ada", "reason": ""})
    assert advised(watched).depth == 2


def test_rates_are_those_of_the_tasks_that_ended_lately(watched: Watched) -> None:
    lab = watched.lab
    watched.at_work(lab.one, "w1")
    for milliseconds in (1_000, 3_000):
        _, claims = lab.running(lab.chain(1))
        lab.one.advance(ok(claims["s0"], ms=milliseconds))
    lab.submit(lab.chain(1))
    found = advised(watched)
    assert (found.drain_per_second, found.step_seconds) == (round(2 / 300, 4), 2.0)
    assert found.clears_in_seconds == 0.2
    assert found.reason == "a worker has started or stopped lately; no fewer than min_workers"
    lab.observer.set_time(301)
    (later,) = lab.observer.core("scaling", {})["namespaces"]
    assert (later["drain_per_second"], later["step_seconds"], later["workers"]) == (None, None, 0)


def test_bounds_that_exclude_each_other_are_refused(watched: Watched) -> None:
    watched.lab.submit(watched.lab.chain(1))
    with pytest.raises(UsageError, match="min_workers is 5, and max_workers 3"):
        advised(watched, min_workers=5, max_workers=3)


def test_the_command_shows_it(watched: Watched) -> None:
    watched.lab.submit(watched.lab.chain(1))
    command = ("analytics", "scaling", "--min-workers", "3")
    shown = invoke(*command, database=watched.lab.url).stdout
    assert watched.lab.namespace in shown
    assert "0 -> 3" in shown
    assert '"recommended_workers": 3' in invoke(*command, "--format", "json", database=watched.lab.url).stdout


def test_each_setting_counts_over_http(watched: Watched) -> None:
    lab = watched.lab
    watched.at_work(lab.one, "w1")
    _, claims = lab.running(lab.chain(1))
    lab.submit(lab.chain(1), *({} for _ in range(5)))

    def advice(**settings: float) -> tuple[int, str]:
        path = "/v1/analytics/scaling"
        found = next(each for each in over_http(lab.url, path, settings) if each["namespace"] == lab.namespace)
        return found["recommended_workers"], found["reason"]

    none = {"min_workers": 0}
    assert advice(**none) == (1, "a worker has started or stopped lately")
    assert advice(**none, cooldown_seconds=0) == (1, "all of them have something to do")
    assert advice(**none, scale_down_depth=0) == (1, "enough for what waits")
    assert advice(**none, scale_up_depth=4, scale_down_depth=0) == (1, "5 steps wait")
    assert advice(**none, scale_up_depth=4, scale_down_depth=0, steps_per_worker=2) == (3, "5 steps wait")
    assert advice(min_workers=7)[0] == 7
    assert advice(**none, max_workers=0)[0] == 0
    lab.one.advance(ok(claims["s0"], ms=90_000))
    assert advice(**none, clear_within_seconds=10) == (5, "5 steps wait, which takes 45 s")
