"""Pure steps whose stored results stand for calls of their handlers (`memoize`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest

import tasker
from tasker.execution.attempt import memos
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan

TEMPLATE = """
name: NAME
namespace: memo
version: 1.0.0
steps:
  - {name: quote, handler: quote, effect: pure, memoize: MEMOIZE, retry: {max_attempts: 1}}
"""
calls = Counter[str]()


@step_handler("quote")
def quote(context: Any) -> dict[str, Any]:
    calls[context.get_input("case")] += 1
    if context.get_input("fails"):
        raise ValueError("no price")
    return {"price": 7, "calls": calls[context.get_input("case")]}


def plan_of(name: str, memoize: str) -> Plan:
    (plan,) = compile_text(TEMPLATE.replace("NAME", name).replace("MEMOIZE", memoize)).plans
    return plan


@pytest.fixture
def memo_app(database_url: str) -> Any:
    calls.clear()
    registry = HandlerRegistry()
    registry.register("quote", quote)
    with tasker.SyncApp(database_url, registry=registry) as running:
        yield running


def run(app: tasker.SyncApp, plan: Plan, **values: Any) -> Any:
    return app.run(plan, {"case": plan.name, **values}, timeout=60)


def test_second_task_with_the_key_uses_the_stored_result_and_says_so(memo_app: tasker.SyncApp) -> None:
    plan = plan_of("keyed", "{key: input.customer, ttl: 1h}")
    first, other, again = (run(memo_app, plan, customer=c, n=n) for n, c in enumerate(("a", "b", "a")))

    assert [report.steps["quote"].result["calls"] for report in (first, other, again)] == [1, 2, 1]
    with psycopg.connect(memo_app.database_url) as connection:
        notes = connection.execute(
            "select metadata->'memoized'->>'task' from tasker.step_moves where metadata ? 'memoized'"
        ).fetchall()
    assert notes == [(first.task_uuid,)]
    assert again.status == "complete"


def test_key_without_a_value_calls_the_handler(memo_app: tasker.SyncApp) -> None:
    plan = plan_of("unkeyed", "{key: input.customer, ttl: 1h}")

    assert [run(memo_app, plan, n=n).steps["quote"].result["calls"] for n in range(2)] == [1, 2]


def test_without_a_key_the_result_depends_on_everything_that_is_read(memo_app: tasker.SyncApp) -> None:
    plan = plan_of("whole", "{ttl: 1h}")
    numbers = [run(memo_app, plan, n=n, key=key).steps["quote"].result["calls"] for n, key in ((1, "x"), (2, "y"))]

    rerun = memo_app.submit(plan, {"case": "whole", "n": 1, "key": "x"}, idempotency_key="again").task_uuid

    assert numbers == [1, 2]
    assert memo_app.wait(rerun, timeout=60).steps["quote"].result["calls"] == 1


def test_failure_and_expired_result_are_not_used(memo_app: tasker.SyncApp) -> None:
    plan = plan_of("fresh", "{key: input.customer, ttl: 1h}")
    failed = run(memo_app, plan, customer="a", fails=True)
    first = run(memo_app, plan, customer="a", n=1)
    with psycopg.connect(memo_app.database_url) as connection:
        connection.execute("update tasker.memos set expires_at = now()")
    second = run(memo_app, plan, customer="a", n=2)

    assert failed.status == "error"
    assert [report.steps["quote"].result["calls"] for report in (first, second)] == [2, 3]


def test_stored_results_of_a_step_are_bounded(memo_app: tasker.SyncApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos, "MOST_RESULTS", 2)
    plan = plan_of("bounded", "{key: input.customer, ttl: 1h}")
    for n, customer in enumerate(("a", "b", "c", "a")):
        run(memo_app, plan, customer=customer, n=n)

    assert calls["bounded"] == 4, "the oldest was replaced"
    with psycopg.connect(memo_app.database_url) as connection:
        assert connection.execute("select count(*) from tasker.memos").fetchone() == (2,)
