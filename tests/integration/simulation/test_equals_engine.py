"""A simulated run is what the engine does with the same task: every step, state, attempt, result, failure and path."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tasker
from tasker.errors import PermanentError, RetryableError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.simulation import mocks
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.simulate import real_handlers, simulate, workflow_and_started
from tasker.step_handler import StepHandler
from tasker.template.plan import Plan, RetryPolicy
from tasker.types import StepContext
from tasker.views.tasks import TaskReport
from tests.acceptance.examples.workflow_cases import WAIT_FOR_OTHERS
from tests.support.random_plans import Scenario, scenarios

WORKFLOWS = Path(__file__).parents[3] / "workflows"
CASES = count(1)
NO_DELAY = RetryPolicy(backoff="none", backoff_base_ms=0)

Failures = Mapping[str, tuple[int, bool]]
"""By step of the template: how many attempts of each instance fail, and whether permanently."""


class Scripted(StepHandler):
    """Does what the case says that the step does."""

    handler_name = "noop"
    results: Mapping[str, Any]
    failures: Failures

    async def call(self, context: StepContext) -> Any:
        name = context._step.name if context._step is not None else ""
        fails, permanent = self.failures.get(name, (0, False))
        if context.retry_count < fails:
            raise (PermanentError if permanent else RetryableError)("scripted")
        return self.success(self.results.get(name, {"value": name}))


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def app(loop: asyncio.Runner, database_url: str) -> Iterator[tasker.App]:
    registry = HandlerRegistry()
    registry.register("noop", Scripted)
    app = tasker.App(database_url, registry=registry)
    loop.run(app.start())
    yield app
    loop.run(app.stop())


def step_paths(database: psycopg.Connection, task: str) -> dict[str, list[str]]:
    rows = database.execute(
        """select s.name, tasker.path_text(m.path) from tasker.workflow_steps s
        left join tasker.step_moves m on m.workflow_step_uuid = s.workflow_step_uuid
        where s.task_uuid = %s order by s.name, m.sort_key""",
        (task,),
    ).fetchall()
    paths: dict[str, list[str]] = {}
    for name, text in rows:
        states = [state for state in (text or "").split(">") if state]
        path = paths.setdefault(name, ["pending"])
        path += states[1:] if states and states[0] == path[-1] else states
    return paths


def of_run(run: SimulatedRun) -> dict[str, Any]:
    return {
        name: (
            str(step.state),
            step.attempts,
            sorted(step.parents),
            step.result,
            [each.failure.retryable for each in step.failures],
            [str(state) for state in step.path],
        )
        for name, step in run.steps.items()
    }


def of_report(report: TaskReport, paths: Mapping[str, list[str]]) -> dict[str, Any]:
    return {
        name: (
            step.state,
            step.attempts,
            sorted(step.depends_on),
            step.result,
            [failure["retryable"] for failure in step.failures],
            paths[name],
        )
        for name, step in report.steps.items()
    }


def mocks_of(scenario: Scenario, failures: Failures) -> dict[str, Any]:
    made = {}
    for step in scenario.plan.steps:
        result = mocks.result(scenario.results.get(step.name, {"value": step.name}))
        fails, permanent = failures.get(step.name, (0, False))
        made[step.name] = mocks.fails(times=fails, retryable=not permanent).then(result) if fails else result
    return made


@st.composite
def cases(draw: st.DrawFn) -> tuple[Scenario, Failures]:
    """A scenario with retries without delay, and the steps of it that fail."""
    scenario, attempts = draw(scenarios(max_steps=10)), draw(st.integers(1, 3))
    steps = tuple(replace(step, retry=replace(NO_DELAY, max_attempts=attempts)) for step in scenario.plan.steps)
    failing = draw(st.lists(st.sampled_from([step.name for step in steps]), max_size=2, unique=True))
    failures = {name: (draw(st.integers(1, 3)), draw(st.booleans())) for name in failing}
    return replace(scenario, plan=replace(scenario.plan, steps=steps)), failures


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_random_graphs_with_failures_end_alike(
    loop: asyncio.Runner, app: tasker.App, database_url: str, case: tuple[Scenario, Failures]
) -> None:
    scenario, failures = case
    plan: Plan = replace(scenario.plan, name=f"case_{next(CASES)}")
    Scripted.results, Scripted.failures = scenario.results, failures

    run = simulate(plan, {}, mocks_of(replace(scenario, plan=plan), failures))
    report = loop.run(app.run(plan, {}, timeout=60))

    with psycopg.connect(database_url) as database:
        paths = step_paths(database, report.task_uuid)
    assert run.status == report.status
    assert of_run(run) == of_report(report, paths)


WORDS = ("fail_task", "continue", "skip_cascade", "skip_cascade", "optional")


@st.composite
def cases_with_words(draw: st.DrawFn) -> tuple[Scenario, Failures]:
    """A scenario whose steps have failure words; some fail for good."""
    scenario, _ = draw(cases())
    steps = tuple(replace(step, on_failure=draw(st.sampled_from(WORDS))) for step in scenario.plan.steps)
    failing = draw(st.sets(st.sampled_from([step.name for step in steps]), min_size=1, max_size=4))
    return replace(scenario, plan=replace(scenario.plan, steps=steps)), dict.fromkeys(failing, (1, True))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases_with_words())
def test_random_graphs_with_failure_words_end_alike(
    loop: asyncio.Runner, app: tasker.App, database_url: str, case: tuple[Scenario, Failures]
) -> None:
    """Whether a step was created before it was skipped depends on the order; what completes, and the end, do not."""
    scenario, failures = case
    plan: Plan = replace(scenario.plan, name=f"case_{next(CASES)}")
    Scripted.results, Scripted.failures = scenario.results, failures

    run = simulate(plan, {}, mocks_of(replace(scenario, plan=plan), failures))
    report = loop.run(app.run(plan, {}, timeout=60))

    with psycopg.connect(database_url) as database:
        broken = database.execute("select * from tasker.violations_v1('{}')").fetchall()
    assert broken == []
    assert (run.status, run.outcome) == (report.status, report.outcome)
    assert {s.name for s in run.steps.values() if s.state == "complete"} == {
        s.name for s in report.steps.values() if s.state == "complete"
    }


EXAMPLES = [path.parent for path in sorted(WORKFLOWS.glob("*/input.json"))]


@pytest.mark.parametrize(
    "folder",
    [path.name for path in EXAMPLES if not (path / "worker.toml").is_file() and path.name not in WAIT_FOR_OTHERS],
)
def test_each_example_takes_the_same_route(module_database_url: str, folder: str) -> None:
    workflow, started = workflow_and_started(WORKFLOWS / folder)
    values = json.loads((WORKFLOWS / folder / "input.json").read_text())
    handlers, templates = real_handlers(workflow, started=started), [each.plan for each in started]
    run = simulate(workflow.plan, values, handlers=handlers, templates=templates)
    with tasker.SyncApp(module_database_url) as app:
        report = app.run(WORKFLOWS / folder, values, timeout=60)
    assert run.status == report.status
    assert {name: of[:3] for name, of in of_run(run).items()} == {
        name: of[:3] for name, of in of_report(report, {step: [] for step in report.steps}).items()
    }
