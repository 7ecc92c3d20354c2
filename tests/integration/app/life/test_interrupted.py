"""Ctrl-C while the synchronous twin starts or stops: it ends the waiting, and not what must come to its end."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tasker
from tasker.engine.process_registry import ProcessRegistry
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.app.life.left import WORKERS, leases, no_session_is_open
from tests.integration.app.program import TEMPLATE, value
from tests.support.waiting import until

Interrupt = Callable[[], object]
STEP = "select state || ' ' || attempts from tasker.workflow_steps"


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    """Ctrl-C, at the first call."""
    main, arrived = threading.main_thread().ident or 0, threading.Event()

    def once(number: int, frame: Any) -> None:
        if not arrived.is_set():
            arrived.set()
            raise KeyboardInterrupt

    def send() -> None:
        while not arrived.is_set():  # a signal that comes just before a wait does not end it: it is sent again
            signal.pthread_kill(main, signal.SIGINT)
            arrived.wait(0.1)

    former = signal.signal(signal.SIGINT, once)
    calls = iter([threading.Thread(target=send, name="interrupt", daemon=True).start])
    yield lambda: next(calls, str)()
    arrived.set()
    signal.signal(signal.SIGINT, former)


@pytest.fixture
def endless(registry: HandlerRegistry) -> Plan:
    """A plan whose step ends when it is told to."""

    @step_handler("endless")
    async def handler() -> None:
        await asyncio.Event().wait()

    registry.register("endless", handler)
    (plan,) = compile_text(TEMPLATE.replace("handler: greet", "handler: endless")).plans
    return plan


def at(monkeypatch: pytest.MonkeyPatch, method: str, call: Callable[[], object]) -> None:
    """Call this when the registry of processes is told; then it is told."""
    original = getattr(ProcessRegistry, method)

    async def called(*args: Any) -> Any:
        call()
        return await original(*args)

    monkeypatch.setattr(ProcessRegistry, method, called)


def started(database_url: str, registry: HandlerRegistry, plan: Plan) -> tasker.SyncApp:
    """An app that runs the step."""
    app = tasker.SyncApp(database_url, registry=registry)
    app.start()
    app.submit(plan, {"name": "x"})
    until(lambda: value(database_url, STEP) == "in_progress 1", "the step runs")
    return app


@pytest.mark.parametrize("way", ["stop", "stop_working"])
def test_ctrl_c_in_the_grace_ends_it_and_gives_the_step_back(
    database_url: str,
    registry: HandlerRegistry,
    endless: Plan,
    interrupt: Interrupt,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    app = started(database_url, registry, endless)
    at(monkeypatch, "drain", interrupt)
    with pytest.raises(KeyboardInterrupt):
        getattr(app, way)(grace_seconds=3600)

    assert (value(database_url, STEP), value(database_url, WORKERS), leases()) == ("enqueued 0", 0, [])
    app.stop()
    no_session_is_open(database_url)


def test_ctrl_c_before_the_wait_has_begun_cuts_nothing_off(
    database_url: str, registry: HandlerRegistry, endless: Plan, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = started(database_url, registry, endless)
    at(monkeypatch, "drain", interrupt)
    schedule, calls = asyncio.run_coroutine_threadsafe, iter([threading.Event()])

    def slow(*args: Any) -> Any:
        never = next(calls, None)
        future = schedule(*args)
        if never is not None:
            until(never.is_set, "interrupted")
        return future

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", slow)
    with pytest.raises(KeyboardInterrupt):
        app.stop(grace_seconds=3600)

    assert (value(database_url, STEP), value(database_url, WORKERS), leases()) == ("enqueued 0", 0, [])
    no_session_is_open(database_url)


def test_ctrl_c_while_it_leaves_cuts_nothing_off(
    database_url: str, registry: HandlerRegistry, endless: Plan, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = started(database_url, registry, endless)
    at(monkeypatch, "stop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        app.stop(0.0)

    assert (value(database_url, STEP), value(database_url, WORKERS), leases()) == ("enqueued 0", 0, [])
    no_session_is_open(database_url)
    assert "tasker app" not in {thread.name for thread in threading.enumerate()}


def test_ctrl_c_while_it_starts_leaves_nothing(
    database_url: str, registry: HandlerRegistry, plan: Plan, interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = tasker.SyncApp(database_url, registry=registry)
    at(monkeypatch, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        app.start()

    assert (value(database_url, WORKERS), leases()) == (0, [])
    no_session_is_open(database_url)
    assert "tasker app" not in {thread.name for thread in threading.enumerate()}
    monkeypatch.undo()
    with app:
        assert app.run(plan, {"name": "Ada"}).succeeded


def test_a_lease_ends_when_the_loop_of_its_worker_has_ended_without_a_stop(database_url: str) -> None:
    command = [sys.executable, "-c", ABANDONED, database_url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "kept: 2\nleft: 0\n", ended.stderr


ABANDONED = """
import asyncio, os, sys, threading
import tasker
from tasker.execution.settings import WorkerSettings
from tasker.settings.execution import Lease
from tasker.handlers.registry.registry import HandlerRegistry

app = tasker.App(sys.argv[1], registry=HandlerRegistry(), settings=WorkerSettings(lease=Lease(lease_ms=300)))
asyncio.run(app.start())
leases = [thread for thread in threading.enumerate() if thread.name.startswith("tasker-lease")]
print("kept:", len(leases))
for thread in leases:
    thread.join(20)
print("left:", sum(thread.is_alive() for thread in leases), flush=True)
os._exit(0)
"""
