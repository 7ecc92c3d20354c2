"""How tasks have gone lately, and what was slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from tasker import App
from tasker.services.fleet.analytics import Analytics
from tasker.views.analytics import Bottlenecks, SlowTemplate, Utilization
from tests.integration.engine.fleet.conftest import Watched, over_http
from tests.support.command_line import invoke
from tests.support.engine_fixture import Lab, fail, ok
from tests.support.fleets.work import Work, work_of

T = TypeVar("T")


def asked(lab: Lab, what: Callable[[Analytics], Coroutine[Any, Any, T]]) -> T:
    async def use() -> T:
        async with App(lab.url, work=False) as app:
            return await what(app.analytics)

    return asyncio.run(use())


@pytest.fixture
def worked(watched: Watched) -> Lab:
    """Three tasks have ended, one of them in error, and one is open."""
    lab = watched.lab
    for name, end, milliseconds in (("quick", ok, 5), ("slow", ok, 90_000), ("slow", fail, 30_000)):
        _, claims = lab.running(lab.chain(1, name=name))
        lab.one.advance(end(claims["s0"], ms=milliseconds))
    lab.submit(lab.chain(1, name="quick"))
    return lab


def test_performance_counts_the_tasks_of_the_window(worked: Lab) -> None:
    found = asked(worked, lambda analytics: analytics.performance())

    assert (found.total, found.active, found.completed, found.failed) == (4, 1, 2, 1)
    assert (found.completion_rate, found.error_rate) == (0.5, 0.25)
    assert found.step_seconds == pytest.approx(40.0017, abs=0.001)
    assert (found.tasks_per_hour, found.steps_per_hour) == (2, 3)
    assert 0.4 < found.health <= 0.675


def test_without_tasks_rates_are_0_and_health_is_1(watched: Watched) -> None:
    found = asked(watched.lab, lambda analytics: analytics.performance())

    assert (found.completion_rate, found.error_rate, found.health) == (0, 0, 1)


def test_bottlenecks_are_listed_by_mean_duration_with_what_to_do(worked: Lab) -> None:
    found = asked(worked, lambda analytics: analytics.bottlenecks(min_executions=1))

    assert [(each.name, each.executions, each.errors, each.mean_seconds) for each in found.steps] == [
        (f"{worked.namespace}/slow/s0", 2, 1, 60.0),
        (f"{worked.namespace}/quick/s0", 1, 0, 0.005),
    ]
    assert {each.template: (each.executions, each.errors, each.mean_steps) for each in found.tasks} == {
        "slow": (2, 1, 1.0),
        "quick": (1, 0, 1.0),
    }
    counts = found.utilization.counts
    assert (counts["complete_tasks"], counts["enqueued_steps"], counts["total_steps"]) == (2, 1, 4)
    assert any("slow/s0: 50% of 2 failed" in each for each in found.recommendations)
    assert any("slow/s0 takes 60 s" in each for each in found.recommendations)


def test_what_ran_less_often_than_wanted_and_more_than_the_limit_is_left_out(worked: Lab) -> None:
    often = asked(worked, lambda analytics: analytics.bottlenecks(min_executions=2))
    one = asked(worked, lambda analytics: analytics.bottlenecks(limit=1, min_executions=1))

    assert [each.template for each in (*often.steps, *often.tasks)] == ["slow", "slow"]
    assert (len(one.steps), len(one.tasks)) == (1, 1)


def test_answers_over_http_have_the_numbers_under_their_names(worked: Lab) -> None:
    rates = over_http(worked.url, "/v1/analytics/performance", {"hours": 1})
    twice = over_http(worked.url, "/v1/analytics/bottlenecks", {"min_executions": 2, "hours": 1})
    (first,) = over_http(worked.url, "/v1/analytics/bottlenecks", {"min_executions": 1, "limit": 1})["slow_steps"]

    counts = [rates[f"{kind}_tasks"] for kind in ("total", "active", "completed", "failed")]
    assert (counts, rates["completion_rate"], rates["error_rate"]) == ([4, 1, 2, 1], 0.5, 0.25)
    assert (rates["tasks_per_hour"], rates["steps_per_hour"]) == (2, 3)
    assert [each["task_name"] for each in (*twice["slow_steps"], *twice["slow_tasks"])] == ["slow", "slow"]
    names = {"namespace_name": worked.namespace, "task_name": "slow", "step_name": "s0"}
    numbers = {"execution_count": 2, "error_count": 1, "error_rate": 0.5}
    times = {"average_duration_seconds": 60.0, "max_duration_seconds": 90.0}
    assert {**names, **numbers, **times}.items() <= first.items()


def test_a_full_pool_is_told() -> None:
    slow = SlowTemplate("shop", "order", "1.0.0", 10, 0, 1.0, 1.0, None, 1.0)

    assert Bottlenecks([], [slow], Utilization(0.9, {})).recommendations == [
        "the pool of this process is nearly full: raise common.database.pool.max_connections"
    ]


def test_commands_show_both(worked: Lab) -> None:
    rates = invoke("analytics", "performance", database=worked.url).stdout
    slow = invoke("analytics", "bottlenecks", "--limit", "1", "--min-executions", "1", database=worked.url).stdout

    assert "tasks       4: 2 complete, 1 failed, 1 open\nrates       50.0% complete, 25.0% failed" in rates
    assert slow.splitlines()[1].split("  ")[-1] == "1 m 30 s"
    assert slow.splitlines()[1].split()[:3] == [f"{worked.namespace}/slow/s0", "2", "50%"]


def test_each_version_of_a_template_is_told_with_how_its_tasks_ended(worked: Lab) -> None:
    (quick,) = asked(worked, lambda analytics: analytics.versions(worked.namespace, "quick"))
    (slow,) = asked(worked, lambda analytics: analytics.versions(worked.namespace, "slow"))

    assert (quick.executions, quick.errors, quick.steps, slow.executions, slow.error_rate) == (1, 0, 1, 2, 0.5)
    assert slow.first_at is not None
    assert slow.last_at is not None
    assert slow.registered_at <= slow.first_at <= slow.last_at
    assert slow.max_seconds >= slow.mean_seconds > 0
    text = invoke("analytics", "versions", f"{worked.namespace}/slow", database=worked.url).stdout
    assert text.splitlines()[1].split()[3:5] == ["2", "50%"]


@pytest.mark.parametrize("function", ["performance", "bottlenecks", "versions"])
def test_what_is_older_than_the_window_costs_nothing(watched: Watched, function: str) -> None:
    lab = watched.lab

    def later() -> Work:
        lab.observer.execute("vacuum tasker.tasks, tasker.workflow_steps")
        session = lab.session()
        session.set_time(7200)
        return work_of(session, lambda: session.core(function, {"hours": 1}))

    few = later()
    lab.submit(lab.chain(2), *({} for _ in range(300)))
    lab.one.run_all()
    many = later()

    assert many.rows <= few.rows + 30, many.heaviest
