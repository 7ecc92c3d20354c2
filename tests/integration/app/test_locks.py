"""Locks that handlers take by name (`context.lock`), in each execution mode."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import tasker
from tasker.errors import PermanentError, RetryableError, TaskerError, ValidationError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker.testing.contexts import step_context

TEMPLATE = """
name: locked
namespace: locks
version: 1.0.0
steps:
  - {name: hold, handler: hold, retry: {max_attempts: 1}, execution: {mode: MODE}}
"""


def plan_of(mode: str = "thread") -> Plan:
    (plan,) = compile_text(TEMPLATE.replace("MODE", mode)).plans
    return plan


def hold(context: Any) -> dict[str, Any]:
    with context.lock("customer-7", "30s") as lock:
        lock.renew()
        return {"token": lock.token, "left": lock.seconds_left}


async def hold_async(context: Any) -> dict[str, Any]:
    async with context.lock("customer-7", "30s") as lock:
        await lock.arenew()
        return {"token": lock.token, "left": lock.seconds_left}


def app_with(database_url: str, handler: Any) -> tasker.SyncApp:
    registry = HandlerRegistry()
    registry.register("hold", step_handler("hold")(handler))
    return tasker.SyncApp(database_url, registry=registry)


@pytest.mark.parametrize(
    ("mode", "handler"), [("thread", hold), ("async", hold_async), ("process", hold), ("process", hold_async)]
)
def test_lock_is_taken_renewed_and_released(database_url: str, mode: str, handler: Any) -> None:
    with app_with(database_url, handler) as app:
        first, second = (app.run(plan_of(mode), {"n": n}, timeout=60).steps["hold"].result for n in range(2))

    assert 0 < first["token"] < second["token"]
    assert 0 < first["left"] <= 30


def test_handlers_of_one_lock_run_one_after_the_other(database_url: str) -> None:
    inside, overlaps = threading.Semaphore(1), []

    def alone(context: Any) -> dict[str, Any]:
        with context.lock("customer-7", "30s", timeout="60s") as lock:
            if not inside.acquire(blocking=False):
                overlaps.append(lock.token)
            threading.Event().wait(0.01)
            inside.release()
            return {"token": lock.token}

    with app_with(database_url, alone) as app:
        tasks = [app.submit(plan_of(), {"n": n}).task_uuid for n in range(3)]
        reports = [app.wait(task, timeout=60) for task in tasks]

    assert [report.status for report in reports] == ["complete"] * 3
    assert overlaps == []
    assert len({report.steps["hold"].result["token"] for report in reports}) == 3


def test_lock_that_is_not_free_in_time_fails_with_its_holder(database_url: str) -> None:
    held, ends = threading.Event(), threading.Event()

    def holds(context: Any) -> dict[str, Any]:
        with context.lock("customer-7", "1h", timeout=0):
            held.set()
            ends.wait(60)
            return {}

    with app_with(database_url, holds) as app:
        first = app.submit(plan_of(), {"n": 1}).task_uuid
        assert held.wait(60)
        refused = app.run(plan_of(), {"n": 2}, timeout=60)
        ends.set()
        app.wait(first, timeout=60)

    error = refused.steps["hold"].error
    assert (error["type"], error["code"]) == ("resource_contention", "lock_held")
    assert f"the step hold of task {first} holds it, for at most " in error["message"]


def test_lost_lock_fails_the_step(database_url: str) -> None:
    def loses(context: Any) -> dict[str, Any]:
        with context.lock("customer-7", 0.01):
            threading.Event().wait(0.02)
            with context.lock("customer-8", "30s"), pytest.raises(PermanentError, match="holds the lock 'customer-8'"):
                context.lock("customer-8", "30s").__enter__()
            with context.lock("customer-7", "30s"):
                pass
        return {}

    with app_with(database_url, loses) as app:
        error = app.run(plan_of(), {}, timeout=60).steps["hold"].error

    assert error["code"] == "lock_lost", error


def test_plain_with_on_the_event_loop_is_refused(database_url: str) -> None:
    async def blocks(context: Any) -> dict[str, Any]:
        return hold(context)

    with app_with(database_url, blocks) as app:
        error = app.run(plan_of("async"), {}, timeout=60).steps["hold"].error

    assert error["message"] == "a lock must not block the event loop"


kept = list[Any]()


def hold_with_the_first_context(context: Any) -> dict[str, Any]:
    kept.append(context)
    try:
        return hold(kept[0])
    except TaskerError as error:
        return {"refused": str(error)}


def test_context_of_an_earlier_call_takes_no_lock(database_url: str) -> None:
    with app_with(database_url, hold_with_the_first_context) as app:
        first, second = (app.run(plan_of("process"), {"n": n}, timeout=60).steps["hold"].result for n in range(2))

    assert first["token"] > 0
    assert second == {"refused": "the call of the handler with this context is over"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "name: expected text of 1 to 200 characters, got ''"),
        ({"name": "\ud800"}, "name: expected text of 1 to 200 characters, got '\\ud800'"),
        ({"ttl": "soon"}, "ttl: expected a duration such as 90s"),
        ({"ttl": 0}, "ttl: expected a duration of at least 1ms"),
        ({"timeout": -1}, "timeout: expected a duration from 0s"),
    ],
)
def test_invalid_lock_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        step_context().lock(**{"name": "x", **arguments})

    assert message in str(caught.value)


def test_lock_outside_of_a_worker_is_free() -> None:
    assert hold(step_context())["token"] == 1
    assert asyncio.run(hold_async(step_context()))["token"] == 1
    with pytest.raises(PermanentError, match="is not held"):
        _ = step_context().lock("x").token


def test_lock_that_was_lost_does_not_hide_the_error_of_the_block() -> None:
    class Lost:
        def call(self, action: str, fields: Any) -> Any:
            return {"token": 1} if action == "take" else {"lost": True}

    context = step_context()
    context._calls = Lost  # type: ignore[assignment]
    with pytest.raises(KeyError), context.lock("x"):
        raise KeyError("x")
    with pytest.raises(RetryableError, match="was lost"), context.lock("x"):
        pass
