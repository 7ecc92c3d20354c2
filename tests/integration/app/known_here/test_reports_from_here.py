"""The report of a task that ran wholly in the program that waits is not read, and says what reading would say."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tasker
from tasker.errors import PermanentError, RetryableError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.step_handler import checkpoint_yield
from tasker.json_values import as_stored, encode
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker.views.tasks import TaskReport
from tests.integration.app.program import value

DIAMOND: Mapping[str, Any] = {"a": [], "c": ["a"], "b": ["a"], "d": ["c", "b"]}
ODD = {
    "longer": [1e22, 1.5e-7, -0.0, 1.50, 10**30, 1e16, "1e5", None],
    "b": {"z": True, "é": "\U0001f600", "aa": {}},
    "a": 2.0,
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@step_handler("gives")
async def gives(context: Any) -> dict[str, Any]:
    return {**ODD, "from": context.get_input("n")}


@step_handler("nothing")
async def nothing(context: Any) -> None:
    """Neither a result nor an input."""


@step_handler("in_thread")
def in_thread(context: Any) -> dict[str, Any]:
    return {"rows": [[1, 2], {"x": 0.1}]}


@step_handler("second_time")
async def second_time(context: Any) -> dict[str, Any]:
    if context.retry_count == 0:
        raise RetryableError("not yet", retry_after=0)
    return {}


@step_handler("by_parts")
async def by_parts(context: Any) -> dict[str, Any]:
    if context.checkpoint is None:
        checkpoint_yield(5, 5, {})
    return {}


@step_handler("fails")
async def fails(context: Any) -> None:
    raise PermanentError("never")


@pytest.fixture
def registry() -> HandlerRegistry:
    registry = HandlerRegistry()
    for handler in (gives, nothing, in_thread, second_time, by_parts, fails):
        registry.register(handler._handler_class.handler_name, handler._handler_class)
    return registry


@pytest.fixture
def goes_on(registry: HandlerRegistry) -> asyncio.Event:
    """What the handler `waits` waits for."""
    event = asyncio.Event()

    @step_handler("waits")
    async def waits(context: Any) -> dict[str, Any]:
        await event.wait()
        return {}

    registry.register("waits", waits._handler_class)
    return event


@pytest.fixture
async def app(database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, registry=registry) as running:
        yield running


def plan(handlers: Mapping[str, str], name: str = "whole", retry: str = "backoff: none") -> Plan:
    """A diamond; `handlers` by step, `gives` where none is named."""
    steps = [
        f"  - {{name: {step}, handler: {handlers.get(step, 'gives')}, dependencies: [{', '.join(parents)}],"
        f" retry: {{{retry}}}}}"
        for step, parents in DIAMOND.items()
    ]
    head = [f"name: {name}", "namespace: here", "version: 1.0.0", "steps:"]
    (made,) = compile_text("\n".join([*head, *steps])).plans
    return made


async def both(
    app: tasker.App, made: Plan, monkeypatch: pytest.MonkeyPatch, priority: int = 3
) -> tuple[TaskReport, TaskReport, bool]:
    """The report that `run` answers, what is read of the task afterwards, and whether `run` has read it."""
    reads, read = [], app.tasks.report

    async def noted(task_uuid: str) -> TaskReport:
        reads.append(task_uuid)
        return await read(task_uuid)

    with monkeypatch.context() as patched:
        patched.setattr(app.tasks, "report", noted)
        given = {"n": 1, "note": {"b": 1, "a": 1e20}}
        report = await app.run(made, given, tags=["z", "a"], priority=priority, initiator="me")
    return report, await read(report.task_uuid), bool(reads)


async def seen(url: str, condition: str) -> None:
    """Return once there is such a step."""
    async with asyncio.timeout(60):
        while not value(url, f"select count(*) from tasker.workflow_steps where {condition}"):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("handlers", [{}, {"b": "nothing", "c": "in_thread"}, {"d": "nothing"}], ids=str)
async def test_a_task_that_ran_here_from_its_first_step_to_its_last_is_reported_without_a_query(
    app: tasker.App, handlers: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        report, stored, queried = await both(app, plan(handlers), monkeypatch)
        assert (repr(report), queried) == (repr(stored), False)  # the order of keys and the types of numbers, too


async def test_so_is_one_whose_first_step_came_through_the_queue(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.runtime is not None
    slots = app.runtime.worker.slots
    reserved = slots.reserve()
    running = asyncio.create_task(both(app, plan({}), monkeypatch, priority=0))
    await seen(app.database_url, "hint_count > 0")
    slots.settle(reserved, 0)
    report, stored, queried = await running
    assert (repr(report), queried) == (repr(stored), False)


async def test_one_of_which_the_first_step_ran_elsewhere_is_read(
    app: tasker.App, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.runtime is not None
    slots = app.runtime.worker.slots
    reserved = slots.reserve()
    running = asyncio.create_task(both(app, plan({}), monkeypatch))

    @step_handler("gives")
    async def gives_and_takes_no_more(context: Any) -> dict[str, Any]:
        assert elsewhere.runtime is not None
        elsewhere.runtime.worker.slots.throttle("test")
        return {}

    registry = HandlerRegistry()
    registry.register("gives", gives_and_takes_no_more._handler_class)
    async with tasker.App(database_url, registry=registry) as elsewhere:
        await elsewhere.plan(plan({}))
        await seen(database_url, "state = 'complete'")
        slots.settle(reserved, 0)
        report, stored, queried = await running
    assert (repr(report), queried) == (repr(stored), True)
    assert report.results["a"] == {}


async def comes(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("noticed_by", ["%", "%listen%"], ids=["everybody", "who listens"])
async def test_one_whose_database_has_gone_back_to_an_earlier_moment_is_read(
    noticed_by: str, app: tasker.App, goes_on: asyncio.Event, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that has ended here may have run elsewhere since, and be another one's by its first claim, too."""
    runtime = app.runtime
    assert runtime is not None
    await comes(lambda: runtime.is_listening)
    running = asyncio.create_task(both(app, plan({"d": "waits"}), monkeypatch))
    await seen(database_url, "name = 'd' and state = 'in_progress'")
    with psycopg.connect(database_url) as connection:
        connection.execute("update tasker.step_results set result = '{\"from\": \"elsewhere\"}' where name = 'a'")
        cut = connection.execute(
            """select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database()
               and pid <> pg_backend_pid() and application_name like %s""",
            (noticed_by,),
        ).fetchall()
    assert cut
    if noticed_by != "%":  # the others know of nothing
        await comes(lambda: not runtime.worker.whole_runs._runs)
    goes_on.set()
    report, stored, queried = await running
    assert (repr(report), queried) == (repr(stored), True)
    assert report.results["a"] == {"from": "elsewhere"}


async def test_what_is_stored_otherwise_than_it_was_said_is_reported_as_it_is_stored(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that may be tried no time is run once, and what is no text becomes text."""
    odd: Any = {"initiator": None, "tags": ["a", 1]}
    for made, said in ((plan({}, retry="max_attempts: 0, backoff: none"), {}), (plan({}), odd)):
        for _ in range(5):
            report = await app.run(made, {"n": 1}, **said)
            assert repr(report) == repr(await app.tasks.report(report.task_uuid))


@pytest.mark.parametrize("step", ["a", "d"])
@pytest.mark.parametrize("handler", ["second_time", "by_parts", "fails"])
async def test_a_task_of_which_a_report_tells_more_than_results_is_read(
    app: tasker.App, step: str, handler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        report, stored, queried = await both(app, plan({step: handler}), monkeypatch)
        assert (repr(report), queried) == (repr(stored), True)


async def test_what_a_caller_changes_in_a_report_is_changed_there_alone(app: tasker.App) -> None:
    report = await app.run(plan({}), {"n": {"deep": [1]}})
    report.results["a"]["from"]["deep"].append(2)
    report.context["n"]["deep"].append(2)
    assert report.results["b"]["from"] == {"deep": [1]}
    assert (await app.tasks.report(report.task_uuid)).context == {"n": {"deep": [1]}}


async def test_a_task_that_nobody_waits_for_any_more_is_not_followed(app: tasker.App, goes_on: asyncio.Event) -> None:
    assert app.runtime is not None
    await app.run(plan({}), {"n": 1})
    with pytest.raises(TimeoutError):
        await app.run(plan({"a": "waits"}), {"n": 1}, timeout=0)
    running = asyncio.create_task(app.run(plan({"a": "waits"}), {"n": 1}))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not app.runtime.worker.whole_runs._runs
    goes_on.set()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_a_value_is_what_the_database_would_give_back(connection: psycopg.Connection[Any], value: Any) -> None:
    encoded = encode(value)
    row = connection.execute("select %s::jsonb::text", (encoded.text,)).fetchone()
    assert repr(as_stored(encoded)) == repr(json.loads(row[0])) if row else False


def test_numbers_of_every_size_are_what_the_database_would_give_back(connection: psycopg.Connection[Any]) -> None:
    chance = random.Random(7)
    numbers = [chance.choice([-1, 1]) * chance.random() * 10.0 ** chance.randint(-320, 300) for _ in range(2000)]
    numbers += [0.0, -0.0, 5e-324, 1e16, 1e15, 123456789012345680.0, 1.7976931348623157e308]
    encoded = encode(numbers)
    row = connection.execute("select %s::jsonb::text", (encoded.text,)).fetchone()
    assert row is not None
    assert repr(as_stored(encoded)) == repr(json.loads(row[0]))


@pytest.fixture
def connection(empty_database_url: str) -> Any:
    with psycopg.connect(empty_database_url) as opened:
        yield opened
