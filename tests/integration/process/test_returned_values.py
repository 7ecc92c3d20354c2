"""What a handler has returned is what was stored of it, whatever its author does with the value afterwards."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import psycopg
import pytest

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker.types import StepHandlerResult

TASKS = 20
TWO_STEPS = """
name: two_steps
namespace_name: values
version: "1.0.0"
steps:
  - {name: a, handler: values.a}
  - {name: b, handler: values.b, dependencies: [a]}
"""
SETTINGS = """
name: settings
namespace_name: values
version: "1.0.0"
steps:
  - name: a
    handler: {callable: values.configured, initialization: {headers: {trace: off}, seen: []}}
"""
DECIDES = """
name: decides
namespace_name: values
version: "1.0.0"
steps:
  - {name: route, type: decision, handler: values.route}
  - {name: left, handler: values.b, dependencies: [route]}
  - {name: right, handler: values.b, dependencies: [route]}
"""
Start = Callable[..., Any]


class Grade(enum.IntEnum):
    GOOD = 1


class Text(str):
    """Text with more to it."""


ODD: Mapping[str, Any] = {
    "pair": (1, {"deep": (2,)}),
    "zero": -0.0,
    "large": 1e22,
    "grade": Grade.GOOD,
    "word": Text("x"),
    "longer": 1,
    "b": 2,
}


@pytest.fixture
def registry() -> HandlerRegistry:
    return HandlerRegistry()


@pytest.fixture
async def app(database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, registry=registry) as running:
        yield running


def plan(text: str) -> Plan:
    (made,) = compile_text(text).plans
    return made


def serve(registry: HandlerRegistry, name: str, function: Callable[[Any], Any]) -> None:
    registry.register(name, step_handler(name)(function)._handler_class)


def shows(registry: HandlerRegistry) -> None:
    """The second step returns what it reads of the first, in words: so no encoding hides what it was."""

    async def b(context: Any) -> dict[str, Any]:
        return {"read": repr(context.get_dependency_result("a"))}

    serve(registry, "values.b", b)


async def test_a_value_that_several_tasks_return_is_for_each_child_what_its_own_parent_stored(
    app: tasker.App, registry: HandlerRegistry
) -> None:
    shared: dict[str, Any] = {"of": None, "seen": []}

    async def a(context: Any) -> dict[str, Any]:
        shared["of"] = context.get_input("n")
        shared["seen"].append(context.get_input("n"))
        return shared

    serve(registry, "values.a", a)
    shows(registry)
    reports = await asyncio.gather(*(app.run(plan(TWO_STEPS), {"n": n}, timeout=60) for n in range(TASKS)))
    stored = [await app.tasks.report(report.task_uuid) for report in reports]

    assert [report.results["a"]["of"] for report in stored] == list(range(TASKS))
    assert [report.results["b"]["read"] for report in stored] == [repr(report.results["a"]) for report in stored]


async def test_a_child_in_the_same_process_reads_the_types_that_one_elsewhere_reads(
    app: tasker.App, registry: HandlerRegistry
) -> None:
    async def a(context: Any) -> dict[str, Any]:
        return dict(ODD)

    serve(registry, "values.a", a)
    shows(registry)
    for _ in range(3):  # the first may go through the queue
        report = await app.run(plan(TWO_STEPS), timeout=60)
        stored = (await app.tasks.report(report.task_uuid)).results
        assert stored["b"]["read"] == repr(stored["a"])


async def test_a_decision_creates_what_is_stored_of_it(app: tasker.App, registry: HandlerRegistry) -> None:
    """Each task routes to its own side, with one value for all."""
    shared: dict[str, Any] = {"decision_point_outcome": {"type": "create_steps", "step_names": []}}

    async def route(context: Any) -> dict[str, Any]:
        shared["decision_point_outcome"]["step_names"] = ["left" if context.get_input("n") % 2 else "right"]
        return shared

    registry.register("values.route", route)
    shows(registry)
    reports = await asyncio.gather(*(app.run(plan(DECIDES), {"n": n}, timeout=60) for n in range(TASKS)))

    for n, report in enumerate(reports):
        assert set(report.steps) == {"route", "left" if n % 2 else "right"}
        assert report.results["route"]["decision_point_outcome"]["step_names"] == ["left" if n % 2 else "right"]


async def test_metadata_are_those_that_came_with_the_result(
    app: tasker.App, registry: HandlerRegistry, database_url: str
) -> None:
    shared: dict[str, Any] = {}

    async def a(context: Any) -> StepHandlerResult:
        shared["of"] = context.get_input("n")
        return StepHandlerResult.success({"of": context.get_input("n")}, {"with": shared})

    serve(registry, "values.a", a)
    shows(registry)
    await asyncio.gather(*(app.run(plan(TWO_STEPS), {"n": n}, timeout=60) for n in range(TASKS)))
    query = "select result->>'of', metadata->'with'->>'of' from tasker.step_results where name = 'a'"
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(query).fetchall()

    assert len(rows) == TASKS
    assert [said for _, said in rows] == [of for of, _ in rows]


async def test_what_a_handler_changes_in_its_settings_no_other_task_sees(
    app: tasker.App, registry: HandlerRegistry
) -> None:
    async def configured(context: Any) -> dict[str, Any]:
        found = repr(context.step_config)
        context.step_config["headers"]["trace"] = context.get_input("n")
        context.step_config["seen"].append(context.get_input("n"))
        return {"found": found}

    serve(registry, "values.configured", configured)
    reports = [await app.run(plan(SETTINGS), {"n": n}, timeout=60) for n in range(3)]

    assert len({report.results["a"]["found"] for report in reports}) == 1
