"""Of a task whose graph grows, and that ran wholly in the program that waits, nothing is asked: not which steps it has,
not what they read, not what became of it. What is known here is what the database would say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings

import tasker
from tasker.app.configured import configured
from tasker.engine.calls import Engine
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.settings.catalogue import single_process
from tasker.settings.check import check
from tasker.settings.nested import nested
from tasker.views.tasks import TaskReport
from tests.support.random_plans import (
    BATCHABLE,
    BESIDE_EACH_OTHER,
    DECISION,
    DEFERRED,
    WORKER,
    Scenario,
    Spec,
    build_plan,
    create_batches,
    create_steps,
    scenarios,
)

NESTED = Path(__file__).parents[4] / "workflows" / "diamond_decision_batch"
BATCH = build_plan(Spec("cut", BATCHABLE), Spec("work", WORKER, ("cut",)), Spec("sum", DEFERRED, ("work", "cut")))
CHOICE = build_plan(
    Spec("first"),
    Spec("choose", DECISION, ("first",)),
    Spec("b", depends_on=("choose",)),
    Spec("beside", depends_on=("first",)),
    Spec("a", depends_on=("choose", "beside")),
    Spec("below", depends_on=("a",)),
    Spec("join", DEFERRED, ("below", "b", "choose")),
)
ONE_AFTER_ANOTHER = build_plan(
    Spec("one", DECISION),
    Spec("cut", BATCHABLE, ("one",)),
    Spec("work", WORKER, ("cut",)),
    Spec("two", DECISION, ("one",)),
    Spec("end", depends_on=("two",)),
    Spec("join", DEFERRED, ("work", "end", "two")),
)
GROWN = {
    "batch": Scenario(BATCH, {"cut": create_batches("work", 12)}),
    "no batches": Scenario(BATCH, {"cut": create_batches("work", 0)}),
    "branches": Scenario(CHOICE, {"choose": create_steps("b", "a")}),
    "one branch": Scenario(CHOICE, {"choose": create_steps("a")}),
    "no branches": Scenario(CHOICE, {"choose": create_steps()}),
    "nested": Scenario(
        ONE_AFTER_ANOTHER,
        {"one": create_steps("cut", "two"), "cut": create_batches("work", 3), "two": create_steps("end")},
    ),
}
DEEP = Scenario(
    build_plan(
        Spec("d0", DECISION),
        *(Spec(f"d{n}", DECISION, (f"d{n - 1}",)) for n in range(1, 11)),
        Spec("end", DEFERRED, ("d10",)),
    ),
    {f"d{n}": create_steps(*([f"d{n + 1}"] if n < 10 else [])) for n in range(11)},
)
"""More decisions below each other than a single process allows by default."""

TWO = Scenario(BESIDE_EACH_OTHER, {"left": create_steps("a"), "right": create_steps("b")})


async def noop(context: Any) -> dict[str, Any]:
    """The result that the input has for this step, and what it has read."""
    read = [[name, value["id"]] for name, value in context.dependency_results.items()]
    decided = context.get_input("results").get(context.step_name, {})
    return {**decided, "id": context.step_name, "read": read}


@pytest.fixture
def registry() -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.register("noop", noop)
    return registry


@pytest.fixture
async def whole_app(database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    async with tasker.App(database_url, registry=registry) as running:
        yield running


@contextmanager
def asked(app: tasker.App) -> Iterator[list[str]]:
    """What the program reads from its database meanwhile."""
    found: list[str] = []
    read, report = Engine.read, app.tasks.report

    async def noted(engine: Engine, name: str, args: Any) -> Any:
        found.append(name)
        return await read(engine, name, args)

    async def noted_report(task_uuid: str) -> TaskReport:
        found.append("report")
        return await report(task_uuid)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Engine, "read", noted)
        patched.setattr(app.tasks, "report", noted_report)
        yield found


async def run(app: tasker.App, scenario: Scenario) -> TaskReport:
    plan = replace(scenario.plan, name=f"grown_{uuid4().hex}")
    return await app.run(plan, {"results": scenario.results}, timeout=60)


def may_read(scenario: Scenario, report: TaskReport, name: str) -> tuple[set[str], set[str]]:
    """What a step has to read, and all that it may have read: it does not wait for what only the template has above."""
    above, todo = set[str](), [name]
    while todo:
        todo.extend(parent for parent in report.steps[todo.pop()].depends_on if parent not in above)
        above.update(todo)
    template = scenario.plan.above.of(_template_step(scenario, name))
    return above, {each for each in report.steps if _template_step(scenario, each) in template}


def _template_step(scenario: Scenario, name: str) -> str:
    return name if name in scenario.plan.by_name else name.rpartition("_")[0]


def assert_as_stored(scenario: Scenario, report: TaskReport, stored: TaskReport) -> None:
    assert repr(report) == repr(stored)
    assert stored.succeeded
    for name, result in stored.results.items():
        needed, possible = may_read(scenario, stored, name)
        read = [each for each, _ in result["read"]]
        assert needed <= {*read} <= possible
        assert all(each == value for each, value in result["read"])


@pytest.mark.parametrize("grown", GROWN)
async def test_nothing_is_asked_about_a_task_that_grew_here(whole_app: tasker.App, grown: str) -> None:
    scenario = GROWN[grown]
    for _ in range(3):
        with asked(whole_app) as questions:
            report = await run(whole_app, scenario)
        later = {"graph"} if grown == "nested" else set()  # the graph is known before the first decision alone
        assert {*questions} & {"graph", "inputs", "report"} == later
        assert_as_stored(scenario, report, await whole_app.tasks.report(report.task_uuid))


async def test_of_two_that_decide_beside_each_other_the_graph_is_read_and_nothing_else(whole_app: tasker.App) -> None:
    for _ in range(5):
        with asked(whole_app) as questions:
            report = await run(whole_app, TWO)
        assert "graph" in questions
        assert "inputs" not in questions
        assert_as_stored(TWO, report, await whole_app.tasks.report(report.task_uuid))


async def test_a_claim_names_a_wide_task_once_many_of_its_steps_have_begun(
    whole_app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its handlers read is then not told again with each of them."""
    claim, told = Engine.claim, list[tuple[list[str], bool]]()

    async def noted(engine: Engine, args: Any) -> Any:
        answer = await claim(engine, args)
        if answer.claims:
            told.append((args.get("known", []), bool(answer.inputs)))
        return answer

    monkeypatch.setattr(Engine, "claim", noted)
    wide = build_plan(Spec("first"), *(Spec(f"s{n}", depends_on=("first",)) for n in range(600)))
    report = await run(whole_app, Scenario(wide, {}))
    assert ([report.task_uuid], False) in told
    assert {tuple(known) for known, _ in told} <= {(), (report.task_uuid,)}
    assert {step.result["read"] == [["first", "first"]] for name, step in report.steps.items() if name != "first"} == {
        True
    }


async def test_a_task_that_runs_again_has_another_graph_than_the_plan_tells(module_database_url: str) -> None:
    numbers = {"numbers": [*range(1, 8), 10 + uuid4().int % 10**6 * 2], "batch_size": 2}
    async with tasker.App(module_database_url) as app:
        first = await app.run(NESTED, numbers)
        begun = await app.reruns.start(first.task_uuid, "routing_decision", actor="ada", reason="once more")
        again = await app.wait(begun.task_uuid, timeout=60)
    assert again.results == first.results
    assert {name: step.depends_on for name, step in again.steps.items()} == {
        name: step.depends_on for name, step in first.steps.items()
    }


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenario=scenarios())
@example(scenario=DEEP)
def test_whatever_grows_here_is_known_as_it_is_stored(
    loop: asyncio.Runner, running_app: tasker.App, scenario: Scenario
) -> None:
    async def both() -> tuple[TaskReport, TaskReport]:
        report = await run(running_app, scenario)
        return report, await running_app.tasks.report(report.task_uuid)

    assert_as_stored(scenario, *loop.run(both()))


@pytest.fixture
def running_app(loop: asyncio.Runner, database_url: str, registry: HandlerRegistry) -> Iterator[tasker.App]:
    url = {"common.database.url": database_url}
    deep = check(nested({**single_process(), **url, "orchestration.decision_points.max_decision_depth": 100})).settings
    assert deep is not None
    app = tasker.App(registry=registry, configuration=configured(deep))
    loop.run(app.start())
    yield app
    loop.run(app.stop())
