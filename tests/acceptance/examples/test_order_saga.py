"""The trip that is undone when it fails: simulated by its scenario file, and in a database."""

from __future__ import annotations

import pytest

import tasker
from tasker.simulation.explore import explore
from tasker.simulation.scenarios import Case, read_scenarios
from tasker.simulation.simulate import real_handlers, simulate, workflow_of
from tests.acceptance.examples.workflow_case import WORKFLOWS, load_input

FOLDER = WORKFLOWS / "order_saga"
CASES = read_scenarios(FOLDER / "order_saga.scenario.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_scenario_comes_to_what_it_expects(case: Case) -> None:
    handlers = real_handlers(workflow_of(case.template))

    run = simulate(case.template, case.values, case.mocks, handlers=handlers)

    assert case.differences(run) == []


def test_scenarios_cover_the_whole_graph() -> None:
    workflow = workflow_of(FOLDER)
    handlers = real_handlers(workflow)
    shown = [simulate(case.template, case.values, case.mocks, handlers=handlers).covered() for case in CASES]

    assert set(explore(workflow.plan).coverage.items) - set().union(*shown) == set()


def test_trip_without_a_car_is_cancelled_and_reported(database_url: str) -> None:
    workflow = workflow_of(FOLDER)
    with tasker.SyncApp(database_url, registry=real_handlers(workflow)) as app:
        report = app.run(workflow.plan, {**load_input("order_saga"), "full": ["car"]}, timeout=60)

    assert (report.status, report.outcome) == ("error", "compensated")
    assert report.results["hotel.undo"] == {"cancelled": "hotel/T-17"}
    assert report.results["report"] == {"text": "Your trip is not booked: no car is left. Nothing is charged."}
