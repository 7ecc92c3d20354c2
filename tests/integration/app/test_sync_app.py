"""The synchronous twin: the same engine for programs without an event loop, and for notebooks, where one runs."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest

import tasker
from tasker.app.app import App
from tasker.app.lifecycle import AppLifecycle
from tasker.app.started import requires_start
from tasker.app.sync_app import SERVICES, SyncApp
from tasker.clock import new_task_uuid
from tasker.errors import DatabaseError, DuplicateTask, InputInvalid, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import Submission
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker.views.events import EventFilter
from tests.integration.app.program import TEMPLATE, value


def test_a_program_without_a_loop_runs_a_task(app: tasker.SyncApp, plan: Plan) -> None:
    outcome = app.run(plan, {"name": "Ada"})

    assert outcome.results == {"greet": {"text": "Hello, Ada!"}}
    assert app.tasks.report(outcome.task_uuid).succeeded
    assert [task.status for task in app.tasks.list()] == ["complete"]
    told = list(app.events.follow(outcome.task_uuid) or ())
    assert told[-1] is not None
    assert (told[-1].to_state, app.replays.list()) == ("complete", [])


async def test_it_works_where_a_loop_runs_already(database_url: str, registry: HandlerRegistry, plan: Plan) -> None:
    """A notebook: the cell is a coroutine of a running loop, and calls like a plain function."""
    with tasker.SyncApp(database_url, registry=registry) as app:
        assert app.run(plan, {"name": "Ada"}).succeeded


def test_many_threads_may_share_it(app: tasker.SyncApp, plan: Plan) -> None:
    texts: list[str] = []

    def run(number: int) -> None:
        texts.append(app.run(plan, {"name": str(number)}).results["greet"]["text"])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(texts) == [f"Hello, {number}!" for number in range(8)]


def test_it_may_be_started_again_and_stopped_twice(database_url: str, registry: HandlerRegistry, plan: Plan) -> None:
    app = tasker.SyncApp(database_url, registry=registry)
    for _ in range(2):
        app.start()
        assert app.run(plan, {"name": "Ada"}).succeeded
        app.stop()
        app.stop()

    with pytest.raises(UsageError, match="not started"):
        app.run(plan, {"name": "Ada"})


def test_a_call_under_way_at_a_stop_is_told_that_its_outcome_is_unknown(
    database_url: str, registry: HandlerRegistry
) -> None:
    app, under_way, said = SyncApp(database_url, registry=registry), threading.Event(), list[BaseException]()
    app.start()

    async def call() -> None:
        under_way.set()
        await asyncio.Event().wait()

    def caller() -> None:
        try:
            app.wait_for(call())
        except BaseException as error:
            said.append(error)

    thread = threading.Thread(target=caller)
    thread.start()
    under_way.wait()
    app.stop()
    thread.join()

    (error,) = said
    assert isinstance(error, UsageError)
    assert "stopped while this call was under way: what it was to do may be done, or not" in str(error)


def test_a_call_that_cancels_itself_is_cancelled(app: tasker.SyncApp) -> None:
    async def call() -> None:
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        app.wait_for(call())


def test_a_start_that_fails_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    with pytest.raises(DatabaseError), tasker.SyncApp("postgresql://nobody@127.0.0.1:9/none"):
        pass

    assert "tasker app" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_a_call_from_its_own_loop_is_refused_instead_of_waiting_for_itself(app: tasker.SyncApp) -> None:
    async def call_back() -> None:
        app.tasks.list()

    with pytest.raises(UsageError, match="comes from that loop"):
        app.wait_for(call_back())


def test_a_plain_handler_may_submit_through_it(app: tasker.SyncApp, registry: HandlerRegistry, plan: Plan) -> None:
    @step_handler("nested")
    def nested() -> dict[str, Any]:
        return app.run(plan, {"name": "from a handler"}).results["greet"]

    registry.register("nested", nested)
    (outer,) = compile_text(TEMPLATE.replace("greeting", "outer").replace("handler: greet", "handler: nested")).plans

    assert app.run(outer, {"name": "x"}).results["greet"] == {"text": "Hello, from a handler!"}


INSIDE = {
    "admission",
    "page_sessions",
    "breakers",
    "health",
    "metrics",
    "messaging",
    "operator_log",
    "saved_views",
    "prepare",
    "runtime",
    "sensitive_values",
    "task_pages",
}
"""What an app's own process, or a server, is made of: reached through `original`."""


def test_the_twin_has_every_member_and_every_method_its_parameters() -> None:
    kinds = services()
    public = {name for name in dir(App) if not name.startswith("_")} | {"breakers"}
    assert public - {name for name in dir(SyncApp) if not name.startswith("_")} == INSIDE
    assert {*kinds} - {*SERVICES} <= INSIDE | {"registry"}

    for twin, original in [(SyncApp, App), *((SERVICES[name], kinds[name]) for name in SERVICES)]:
        for name, method in inspect.getmembers(original, inspect.isfunction):
            if not name.startswith("_") and (hasattr(twin, name) or inspect.iscoroutinefunction(method)):
                assert parameters(getattr(twin, name)) == parameters(method), (twin, name)
                assert getattr(twin, name).__name__ == name, "it calls this method, and no other"


def test_the_twin_reads_a_subscription_with_all_its_options(app: tasker.SyncApp) -> None:
    text = TEMPLATE.replace("handler: greet", "handler: greet, publishes_events: [{name: greeted}]")
    for namespace in ("here", "there"):
        (plan,) = compile_text(text.replace("namespace: caller", f"namespace: {namespace}")).plans
        app.run(plan, {"name": namespace})

    def first(name: str, **options: Any) -> Any:
        with closing(app.domain_events.subscribe(name, EventFilter(names=["greeted"]), **options)) as events:
            return (next(events).payload or {})["text"]

    assert [first("one"), first("one")] == ["Hello, here!"] * 2, "one that is not dealt with comes again"
    assert first("two", namespaces=["there"]) == "Hello, there!"
    assert first("three", from_now=True, seconds_ago=3600.0) == "Hello, here!"
    with closing(app.domain_events.follow(EventFilter(names=["greeted"]), after=0, namespaces=["there"])) as followed:
        event = next(followed)
    assert event is not None
    assert event.payload == {"text": "Hello, there!"}


def services() -> dict[str, type]:
    """The services of an `App` by name, as their attributes are declared."""
    declared = {name: value for name, value in vars(AppLifecycle).items() if isinstance(value, requires_start)}
    return {name: get_args(value.__orig_class__)[0] for name, value in declared.items() if not name.startswith("_")}


def parameters(method: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(method).parameters)


def test_ctrl_c_ends_the_waiting_and_gives_the_step_back(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", database_url]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "running\n"
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()

    assert (process.returncode, out) == (130, "interrupted\n"), err
    step = value(database_url, "select state || ' ' || attempts from tasker.workflow_steps")
    assert step == "enqueued 0", "given back without using an attempt"


PROGRAM = f"""
import asyncio, signal, sys
import tasker
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text

@step_handler("greet")
async def greet():
    print("running", flush=True)
    await asyncio.Event().wait()

registry = HandlerRegistry()
registry.register("greet", greet)
(plan,) = compile_text('''{TEMPLATE}''').plans
try:
    with tasker.SyncApp(sys.argv[1], registry=registry) as app:
        try:
            app.run(plan, {{"name": "x"}})
        finally:
            app.stop(0.1)
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(130)
"""


async def test_a_bulk_submission_answers_each_request(database_url: str, registry: HandlerRegistry, plan: Plan) -> None:
    async with App(database_url, registry=registry) as app:
        answers = await app.submit_many(plan, [{"name": "a"}, Submission({"name": "b"}), {"name": "a"}])
        ended = await asyncio.gather(*(app.wait(a.task_uuid) for a in answers if not isinstance(a, DuplicateTask)))

    assert [type(answer).__name__ for answer in answers] == ["SubmissionResult", "SubmissionResult", "DuplicateTask"]
    assert [report.results["greet"]["text"] for report in ended] == ["Hello, a!", "Hello, b!"]


async def test_of_a_bulk_submission_that_is_refused_the_wrong_input_is_named_and_nothing_is_created(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with App(database_url, registry=registry, work=False) as app:
        for wrong in ({"name": 7}, "Ada", None):
            with pytest.raises(InputInvalid, match=r"^request 2 of 3: the input does not fit the template"):
                await app.submit_many(plan, [{"name": "a"}, wrong, {"name": "b"}])  # type: ignore[list-item]
    assert value(database_url, "select count(*) from tasker.tasks") == 0


async def test_waiting_gives_up_in_time_and_the_task_goes_on(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    async with App(database_url, registry=registry, work=False) as app:
        submitted = await app.submit(plan, {"name": "x"}, idempotency_key=new_task_uuid())
        with pytest.raises(TimeoutError):
            await app.wait(submitted.task_uuid, timeout=0.01)
        assert (await app.tasks.report(submitted.task_uuid)).status == "steps_in_process"
