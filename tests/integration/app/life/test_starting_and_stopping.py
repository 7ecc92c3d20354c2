"""Starts that fail, second starts, restarts, and stops while somebody waits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.app.app import App
from tasker.errors import InputInvalid, UsageError
from tasker.errors.resolution import HandlerLoadError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.app.life.left import WORKERS, leases, nothing_is_open
from tests.integration.app.program import TEMPLATE, value


async def test_of_a_start_that_fails_nothing_is_left_and_it_may_be_tried_again(
    database_url: str, plan: Plan, tmp_path: Path
) -> None:
    before, handlers = asyncio.all_tasks(), tmp_path / "shop.py"
    app = App(database_url, handlers=str(handlers))
    for _ in range(2):
        with pytest.raises(HandlerLoadError):
            await app.start()
        nothing_is_open(database_url, before)
        await app.stop()

    handlers.write_text(HANDLERS)
    async with app:
        assert (await app.run(plan, {"name": "Ada"})).succeeded


HANDLERS = """
from tasker.step_handler import step_handler

@step_handler("greet")
def greet():
    return {"text": "hello"}
"""


async def test_a_start_that_fails_behind_its_workers_start_ends_the_worker(
    database_url: str, registry: HandlerRegistry
) -> None:
    before, app = asyncio.all_tasks(), _Unlucky(database_url, registry=registry)
    with pytest.raises(RuntimeError, match="no luck"):
        await app.start()

    nothing_is_open(database_url, before)
    assert value(database_url, WORKERS) == 0
    assert not leases()


class _Unlucky(App):
    async def _open(self, opened: Any) -> None:
        await super()._open(opened)
        raise RuntimeError("no luck")


async def test_a_second_start_is_refused_and_the_first_goes_on(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with App(database_url, registry=registry) as app:
        with pytest.raises(UsageError, match="this App is started already"):
            await app.start()
        assert value(database_url, WORKERS) == 1
        assert (await app.run(plan, {"name": "Ada"})).succeeded


def test_a_second_start_of_its_twin_is_refused_and_the_first_goes_on(app: tasker.SyncApp, plan: Plan) -> None:
    with pytest.raises(UsageError, match="is started already"):
        app.start()
    assert app.run(plan, {"name": "Ada"}).succeeded


async def test_what_the_last_process_left_open_goes_on_once_its_workflow_is_named(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with App(database_url, work=False) as before:
        task = (await before.submit(plan, {"name": "Ada"})).task_uuid
    async with App(database_url, registry=registry) as app:
        await app.plan(plan)
        assert (await app.wait(task, timeout=60)).succeeded


async def test_no_step_sees_the_context_of_the_request_that_submitted_it(
    database_url: str, registry: HandlerRegistry
) -> None:
    """Only the first steps could, and only where the program that submits claims them."""

    @step_handler("on the loop")
    async def on_the_loop() -> dict[str, str]:
        return {"user": USER.get()}

    @step_handler("in a thread")
    def in_a_thread() -> dict[str, str]:
        return {"user": USER.get()}

    USER.set("of the program")
    registry.register("on the loop", on_the_loop)
    registry.register("in a thread", in_a_thread)
    (plan,) = compile_text(TWO_ROOTS).plans
    async with App(database_url, registry=registry) as app:
        reset = USER.set("of a request")
        report = await app.run(plan, {"name": "x"}, timeout=60)
        USER.reset(reset)

    assert report.results == {name: {"user": "of the program"} for name in "abc"}


USER: ContextVar[str] = ContextVar("user")
TWO_ROOTS = """
name: two_roots
namespace: caller
version: 1.0.0
steps:
  - {name: a, handler: on the loop}
  - {name: b, handler: in a thread}
  - {name: c, handler: on the loop, dependencies: [a]}
"""


async def test_who_waits_when_the_app_is_stopped_is_told(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with App(database_url, registry=registry, work=False) as app:
        task = (await app.submit(plan, {"name": "x"})).task_uuid
        ways: list[Coroutine[Any, Any, Any]] = [app.wait(task), app.wait(task, timeout=3600), app.finished(task)]
        waiting = [asyncio.ensure_future(way) for way in ways]
        while len(app._waiters._waiting.get(task, ())) < len(ways):
            await asyncio.sleep(0)
        waiters = app._waiters

    for error in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(error, UsageError)
        assert f"stopped while it waited for task {task}" in str(error)
    with pytest.raises(UsageError, match="was stopped"):
        await waiters.wait(task)


async def test_a_second_stop_waits_for_the_first(database_url: str, registry: HandlerRegistry) -> None:
    runs, goes_on = asyncio.Event(), asyncio.Event()

    @step_handler("held")
    async def held() -> None:
        runs.set()
        await goes_on.wait()

    registry.register("held", held)
    (plan,) = compile_text(TEMPLATE.replace("handler: greet", "handler: held")).plans
    app = App(database_url, registry=registry)
    await app.start()
    task = (await app.submit(plan, {"name": "x"})).task_uuid
    await runs.wait()
    first, second = (asyncio.ensure_future(app.stop(grace_seconds=60)) for _ in range(2))
    asyncio.get_running_loop().call_soon(goes_on.set)
    await second

    assert first.done()
    async with App(database_url, work=False) as app:
        assert (await app.tasks.report(task)).succeeded


async def test_a_stop_that_is_cancelled_ends_the_worker_all_the_same(
    database_url: str, registry: HandlerRegistry
) -> None:
    before, runs = asyncio.all_tasks(), asyncio.Event()

    @step_handler("endless")
    async def endless() -> None:
        runs.set()
        await asyncio.Event().wait()

    registry.register("endless", endless)
    (plan,) = compile_text(TEMPLATE.replace("handler: greet", "handler: endless")).plans
    app = App(database_url, registry=registry)
    await app.start()
    await app.submit(plan, {"name": "x"})
    await runs.wait()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(app.stop(grace_seconds=3600), 0.01)

    nothing_is_open(database_url, before)
    assert value(database_url, WORKERS) == 0
    assert value(database_url, "select state || ' ' || attempts from tasker.workflow_steps") == "enqueued 0"
    await app.stop()


@pytest.mark.parametrize("given", [["a"], "text", 7])
async def test_an_input_that_is_no_object_is_refused_with_or_without_a_schema(database_url: str, given: Any) -> None:
    bare = "\n".join(line for line in TEMPLATE.splitlines() if "input_schema" not in line)
    async with App(database_url, work=False) as app:
        for text in (TEMPLATE, bare):
            (plan,) = compile_text(text).plans
            with pytest.raises(InputInvalid, match=r"\$: expected an object, found \w+") as caught:
                await app.submit(plan, given)
            assert [problem.path for problem in caught.value.problems] == ["$"]


def test_a_copy_of_the_process_is_refused_and_its_original_goes_on(database_url: str, tmp_path: Path) -> None:
    assert run(FORKED, database_url, tmp_path) == (
        "run: the tasker app was started in process PARENT\n"
        "tasks: the tasker app was started in process PARENT\n"
        "start: the tasker app was started in process PARENT\n"
        "a new one: complete\n"
        "ended with 0\n"
        "complete\n"
    )


def test_an_app_that_nobody_stopped_may_be_stopped_by_the_end_of_the_interpreter(
    database_url: str, tmp_path: Path
) -> None:
    assert run(AT_EXIT, database_url, tmp_path) == "complete\n"
    assert value(database_url, WORKERS) == 0


def run(program: str, database_url: str, folder: Path) -> str:
    """What the program prints; it writes no line of an error."""
    (folder / "program.py").write_text(PROGRAM + program)
    command = [sys.executable, "program.py", database_url]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


PROGRAM = f"""
import atexit, os, sys
import tasker
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text

@step_handler("greet")
def greet():
    return {{"text": "hello"}}

registry = HandlerRegistry()
registry.register("greet", greet)
(plan,) = compile_text('''{TEMPLATE}''').plans
app = tasker.SyncApp(sys.argv[1], registry=registry)
app.start()
"""
FORKED = """
child = os.fork()
if not child:
    for name, call in {
        "run": lambda: app.run(plan, {"name": "x"}), "tasks": app.tasks.list, "start": app.start
    }.items():
        try:
            call()
        except UsageError as error:
            print(f"{name}: {error}".replace(str(os.getppid()), "PARENT").partition(",")[0])
    app.stop()
    with tasker.SyncApp(sys.argv[1], registry=registry) as own:
        print("a new one:", own.run(plan, {"name": "y"}).status, flush=True)
    os._exit(0)
print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(app.run(plan, {"name": "z"}).status, flush=True)
app.stop()
"""
AT_EXIT = """
atexit.register(app.stop)
print(app.run(plan, {"name": "x"}).status, flush=True)
"""
