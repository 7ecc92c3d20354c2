"""The payment that waits for its provider: simulated by its scenario file, and with events that are sent to it."""

from __future__ import annotations

import pytest

import tasker
from tasker.simulation.scenarios import Case, read_scenarios
from tasker.simulation.simulate import real_handlers, simulate, workflow_of
from tests.acceptance.examples.workflow_case import WORKFLOWS, load_input
from tests.support.waiting import until

FOLDER = WORKFLOWS / "payment_capture"
CASES = read_scenarios(FOLDER / "payment_capture.scenario.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_scenario_comes_to_what_it_expects(case: Case) -> None:
    handlers = real_handlers(workflow_of(case.template))

    run = simulate(case.template, case.values, case.mocks, handlers=handlers)

    assert case.differences(run) == []


def test_charge_waits_for_each_event_of_its_provider(database_url: str) -> None:
    workflow = workflow_of(FOLDER)
    with tasker.SyncApp(database_url, registry=real_handlers(workflow)) as app:
        task = app.submit(workflow.plan, load_input("payment_capture")).task_uuid
        until(lambda: app.tasks.report(task).waiting_for == ["event"], "the charge waits")
        first = app.send_event("payment_capture", "payment.updated", {"status": "pending"}, key="A-1")
        app.send_event("payment_capture", "payment.updated", {"status": "declined"}, key="A-1")
        report = app.wait(task, timeout=60)

    charged = report.steps["charge"]
    assert first.matched == 1
    assert (report.status, charged.attempts, charged.result["status"]) == ("complete", 1, "declined")
    assert report.steps["book"].result == {"booked": 0, "looks": 0}
