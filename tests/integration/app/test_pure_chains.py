"""Chains of pure steps run with the result above them and are stored with it, as if they had been claimed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import tasker
from tasker.execution import run_ahead
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.logging.current_step import reporter
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.app.test_folded_conditions import AHEAD, STEPS, TASK
from tests.support.worker_settings import worker_settings

TEMPLATE = """
name: chain
namespace: effects
version: 1.0.0
steps:
  - {name: a, handler: h, effect: pure}
  - {name: b, handler: h, effect: pure, dependencies: [a], retry: {backoff_base_ms: 1}}
  - {name: c, handler: declared, dependencies: [b]}
  - {name: d, handler: h, effect: pure, dependencies: [c]}
"""


class Handlers:
    """The handlers under test, with what they were asked; `act` is called in each."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.act: Any = lambda context: None
        self.in_thread: Any = lambda context: None

        @step_handler("h")
        async def handle(context: Any) -> dict[str, Any]:
            self.calls.append(context.step_name)
            if (doing := self.act(context)) is not None:
                await doing
            return {name: dict(value) for name, value in context.dependency_results.items()} | {"of": context.step_name}

        self.handle = handle

    def registry(self) -> HandlerRegistry:
        @step_handler("declared", effect="pure")
        def declared(context: Any) -> dict[str, Any]:
            self.calls.append(context.step_name)
            self.in_thread(context)
            return {"above": sorted(context.dependency_results)}

        registry = HandlerRegistry()
        registry.register("h", self.handle)
        registry.register("declared", declared)
        return registry


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture
def app(database_url: str, handlers: Handlers) -> Iterator[tasker.SyncApp]:
    with tasker.SyncApp(database_url, registry=handlers.registry()) as running:
        yield running


def compiled(**changes: str) -> Plan:
    text = TEMPLATE
    for old, new in changes.items():
        text = text.replace(old, new)
    (plan,) = compile_text(text).plans
    return plan


def run(app: tasker.SyncApp, plan: Plan) -> tuple[int, Any, Any]:
    """Run a task; return how many of its steps ran ahead, its row, and those of its steps."""
    task = app.submit(plan, {}, idempotency_key=str(uuid4())).task_uuid
    app.finished(task, timeout=60)
    with psycopg.connect(app.database_url) as db:
        found = db.execute(AHEAD, (task,)).fetchone()
        assert db.execute("select count(*) from tasker.violations_v1('{}')").fetchone() == (0,)
        return found[0], db.execute(TASK, (task,)).fetchall(), db.execute(STEPS, (task,)).fetchall()  # type: ignore[index]


def test_chain_of_quick_steps_is_stored_as_if_each_had_been_claimed(app: tasker.SyncApp) -> None:
    plan = compiled()
    first, *usual = run(app, plan)
    second, *ahead = run(app, plan)
    assert (first, second) == (0, 3), "the first task shows how long the steps take"
    assert ahead == usual
    assert ahead[0][0][:4] == ("complete", True, 4, 4)


def test_slow_steps_run_one_by_one(app: tasker.SyncApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_ahead, "QUICK_MS", -1)
    assert [run(app, compiled())[0] for _ in range(2)] == [0, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"dependencies: [a]": "dependencies: [a], on_failure: continue"},
        {"dependencies: [a]": "dependencies: [a], concurrency: {limit: 1}"},
        {"dependencies: [a]": "dependencies: [a], publishes_events: [{name: a.b}]"},
        {"dependencies: [a]": "dependencies: [a], circuit_breaker: {}"},
        {"{name: a, handler: h, effect: pure}": "{name: a, handler: h}"},
        {"dependencies: [c]}": "dependencies: [c]}\n  - {name: e, handler: h, dependencies: [a]}"},
    ],
)
def test_step_that_others_decide_about_does_not_run_ahead(app: tasker.SyncApp, change: dict[str, str]) -> None:
    plan = compiled(**change)
    steps = [run(app, plan)[2] for _ in range(2)][1]
    paths = {row[0]: row[14] for row in steps}
    assert len(paths["b"]) > 0
    assert run(app, plan)[0] <= 2, "c and d may still run ahead of the write of b"


def test_failure_ahead_is_reported_by_an_attempt_of_the_step(app: tasker.SyncApp, handlers: Handlers) -> None:
    plan = compiled()
    run(app, plan)
    failing = iter((True, True, False))

    def act(context: Any) -> None:
        if context.step_name == "b" and next(failing, False):
            raise RuntimeError("not yet")

    handlers.act = act
    _, task, steps = run(app, plan)
    attempts = {row[0]: row[2] for row in steps}
    assert (task[0][0], attempts["b"]) == ("complete", 2), "the call ahead was no attempt"


def test_step_that_takes_long_ahead_does_not_hold_the_result_above_it(
    app: tasker.SyncApp, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_ahead, "HOLD_SECONDS", 0.02)
    plan = compiled()
    run(app, plan)
    first = iter((True,))

    def act(context: Any) -> Any:
        return asyncio.Event().wait() if context.step_name == "b" and next(first, False) else None

    handlers.act = act
    _, task, steps = run(app, plan)
    assert (task[0][0], {row[0]: row[2] for row in steps}["b"]) == ("complete", 1)
    assert handlers.calls.count("b") == 3


def test_task_that_is_cancelled_while_a_step_runs_ahead_stops_it(
    app: tasker.SyncApp, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_ahead, "HOLD_SECONDS", 30)
    plan = compiled()
    run(app, plan)
    began, stopped = threading.Event(), threading.Event()

    async def wait() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    handlers.act = lambda context: wait() if context.step_name == "b" else None
    task = app.submit(plan, {}, idempotency_key=str(uuid4())).task_uuid
    assert began.wait(20)
    app.tasks.cancel(task)
    assert stopped.wait(10)
    assert app.wait(task, timeout=60).status == "cancelled"
    with psycopg.connect(app.database_url) as db:
        assert db.execute(AHEAD, (task,)).fetchone() == (0,)


def test_condition_below_a_chain_is_stored_with_it(app: tasker.SyncApp) -> None:
    plan = compiled(**{"dependencies: [c]}": 'dependencies: [c], when: "true"}'})
    run(app, plan)
    assert run(app, plan)[0] == 3, "b, c and the condition; d is created by it"


def test_results_that_an_orchestrator_stores_are_not_brought_together(database_url: str, handlers: Handlers) -> None:
    with tasker.SyncApp(
        database_url, registry=handlers.registry(), settings=worker_settings(result_path="queued")
    ) as app:
        plan = compiled()
        assert [run(app, plan)[0] for _ in range(2)] == [0, 0]


def test_lines_of_a_call_ahead_that_does_not_count_are_not_stored(app: tasker.SyncApp, handlers: Handlers) -> None:
    plan = compiled()
    run(app, plan)
    calls = dict[str, int]()

    def act(context: Any) -> None:
        calls[context.step_name] = number = calls.get(context.step_name, 0) + 1
        reports = reporter.get()
        assert reports is not None
        reports.printed(f"{context.step_name} is called: {number}\n")
        if context.step_name == "b" and number == 1:
            raise RuntimeError("not yet")

    handlers.act = act
    run(app, plan)
    assert calls["b"] == 2
    lines = [("a is called: 1",), ("b is called: 2",), ("d is called: 1",)]
    stored = "select message from tasker.step_logs where message like '% is called%' order by message"
    with psycopg.connect(app.database_url) as db:
        for _ in range(200):
            if len(found := db.execute(stored).fetchall()) >= len(lines):
                break
            threading.Event().wait(0.05)
            db.commit()
    assert found == lines


def test_step_of_a_thread_that_takes_long_ahead_neither_holds_the_result_nor_leaks_its_thread(
    app: tasker.SyncApp, handlers: Handlers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_ahead, "HOLD_SECONDS", 0.1)
    plan = compiled()
    run(app, plan)
    ends, first = threading.Event(), iter((True,))
    handlers.in_thread = lambda context: next(first, False) and ends.wait(60)
    try:
        assert run(app, plan)[1][0][0] == "complete", "while the call ahead still waits"
        assert not any(record.message.startswith("handler_thread_leaked") for record in caplog.records)
    finally:
        ends.set()


def test_results_are_stored_and_used_ahead(app: tasker.SyncApp, handlers: Handlers) -> None:
    plan = compiled(**{"retry: {backoff_base_ms: 1}": "memoize: {key: input.customer, ttl: 1h}"})
    for customer in ("x", "y", "y"):
        task = app.submit(plan, {"customer": customer}, idempotency_key=str(uuid4())).task_uuid
        app.finished(task, timeout=60)
    assert handlers.calls.count("b") == 2
    with psycopg.connect(app.database_url) as db:
        notes = db.execute("select count(*) from tasker.step_moves where metadata ? 'memoized'").fetchone()
        assert db.execute("select count(*) from tasker.memos").fetchone() == (2,)
        ahead = db.execute(AHEAD, (task,)).fetchone()
    assert (notes, ahead) == ((1,), (3,))
