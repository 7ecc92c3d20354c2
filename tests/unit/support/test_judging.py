"""The judge of runs with faults: what it must complain of, and what a lost worker explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tasker.services.workflows.files import load_plans
from tasker.template.plan import Plan
from tests.acceptance.examples.workflow_case import WORKFLOWS, Case
from tests.acceptance.examples.workflow_cases import CASES
from tests.support.fleets.judging import Found, complaints
from tests.support.fleets.mixture import CSV, SLOW, SLOW_CASE

LOST = {"error_type": "worker_lost", "retryable": True}
OWN = {"error_type": "RetryableError", "retryable": True}
(PLAN,) = load_plans(SLOW)
MOST = PLAN.by_name["left"].retry.max_attempts


def plan_of(case: Case) -> Plan:
    return load_plans(WORKFLOWS / case.folder, "test")[0]


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.id == name)


def as_it_should(case: Case = SLOW_CASE) -> Found:
    """A task that came to what its case says without a fault."""
    states = {step: case.state_of(step) for step in case.steps}
    declared = {step: 0 if state == "pending" else case.attempts.get(step, 1) for step, state in states.items()}
    results = {
        step: case.results.get(step, dict(case.holds.get(step, {})))
        for step, state in states.items()
        if state == "complete"
    }
    failures: dict[str, list[Any]] = {
        step: [OWN] * (attempts - (states[step] == "complete")) for step, attempts in declared.items() if attempts
    }
    if case.failed:
        failures[case.failed.step][-1] = {
            "error_type": case.failed.error_type,
            "retryable": case.failed.retryable,
        }
    return Found(case.status, states, declared, results, {step: failures.get(step, []) for step in states})


def ended(found: Found, step: str, failures: Sequence[Any], *waiting: str) -> Found:
    """`step` ended in error by these failures, and those below it wait."""
    found.state = found.states[step] = "error"
    found.failures[step], found.attempts[step] = list(failures), len(failures)
    found.results.pop(step)
    for below in waiting:
        found.states[below], found.attempts[below], found.failures[below] = "pending", 0, []
        found.results.pop(below)
    return found


def told(found: Found, case: Case = SLOW_CASE, plan: Plan = PLAN) -> list[str]:
    return list(complaints(case, plan, found))


@pytest.mark.parametrize("name", ["order", "order_payment_never_answers", "order_card_declined", "checkpoint"])
def test_a_task_that_came_to_what_its_case_says_is_well(name: str) -> None:
    case = case_of(name)

    assert told(as_it_should(case), case, plan_of(case)) == []
    assert told(as_it_should()) == []


def test_a_lost_attempt_explains_one_attempt_more_and_no_further_one() -> None:
    found = as_it_should()
    found.failures["left"], found.attempts["left"] = [LOST], 2
    assert told(found) == []

    found.attempts["left"] = 3
    assert told(found) == [
        "slow: left took 3 attempts, and 2 of them ended",
        "slow: left took 3 attempts, 1 lost, expected 1",
    ]


def test_attempts_without_a_failure_are_complained_of() -> None:
    found = as_it_should()
    found.attempts = dict.fromkeys(found.attempts, 5)

    assert {line.split()[1] for line in told(found)} == {*SLOW_CASE.steps}


def test_an_unexpected_failure_of_the_handler_is_complained_of() -> None:
    found = as_it_should()
    found.failures["left"], found.attempts["left"] = [OWN], 2

    assert told(found) == ["slow: left took 2 attempts, 0 lost, expected 1"]


def test_a_step_whose_last_attempt_was_lost_explains_its_end_and_that_those_below_wait() -> None:
    assert told(ended(as_it_should(), "left", [LOST] * MOST, "last")) == []
    assert told(ended(as_it_should(), "left", [LOST] * MOST)) != [], "what is below has run"


@pytest.mark.parametrize("failures", [[LOST], [LOST] * (MOST - 1), [*[LOST] * (MOST - 1), OWN]])
def test_a_step_that_ended_with_attempts_left_or_by_its_own_failure_is_complained_of(failures: list[Any]) -> None:
    assert told(ended(as_it_should(), "left", failures, "last"))


def test_what_is_beside_a_step_that_was_lost_for_good_must_be_as_the_case_says() -> None:
    found = ended(as_it_should(), "left", [LOST] * MOST, "last")
    found.states["right"], found.attempts["right"] = "pending", 0
    found.results.pop("right")

    assert any("'right': 'pending'" in line for line in told(found))


def test_a_task_that_does_not_fail_with_its_step_is_complained_of() -> None:
    found = ended(as_it_should(), "left", [LOST] * MOST, "last")
    found.state = "complete"

    assert told(found)


def test_a_step_that_may_run_only_once_may_end_by_its_first_loss() -> None:
    case = case_of("order")
    found = ended(as_it_should(case), "ship_order", [LOST], "send_confirmation")
    assert told(found, case, plan_of(case)) == []

    found = ended(as_it_should(case), "process_payment", [LOST], "ship_order", "send_confirmation")
    assert told(found, case, plan_of(case))


def test_steps_that_a_lost_one_would_have_created_may_be_missing_and_no_others() -> None:
    plan = plan_of(CSV)
    most = plan.by_name["analyze_csv"].retry.max_attempts
    found = as_it_should(CSV)
    found.results = {step: dict(CSV.holds.get(step, {})) for step in CSV.steps}
    found = ended(found, "analyze_csv", [LOST] * most, *CSV.steps[1:])
    for step in CSV.steps[1:]:
        if not plan.by_name.get(step, plan.by_name["process_csv_batch"]).static:
            del found.states[step]
    assert told(found, CSV, plan) == []

    del found.states["analyze_csv"]
    assert told(found, CSV, plan)


def test_a_step_that_failed_otherwise_than_its_case_says_is_complained_of_even_after_a_loss() -> None:
    case = case_of("order_card_declined")
    found = as_it_should(case)
    found.failures["process_payment"] = [LOST, OWN]
    found.attempts["process_payment"] = 2

    assert told(found, case, plan_of(case))


def telling(**read_of_last: str) -> Found:
    """The slow task, whose handlers tell what they are and what they read."""
    found = as_it_should()
    found.ids = {step: f"id of {step}" for step in found.states}
    above = {"first": {}, "last": {"left": "value of left", **read_of_last}}
    for step in found.results:
        read = above.get(step, {"first": "value of first"})
        found.results[step] = {"step": f"id of {step}", "value": f"value of {step}", "read": read}
    return found


def test_results_that_were_read_as_they_are_stored_are_well() -> None:
    assert told(telling()) == []


def test_the_result_of_another_step_is_complained_of() -> None:
    found = telling()
    found.results["right"] = found.results["left"]

    assert any("has the result of id of left" in line for line in told(found))


def test_a_value_that_was_read_and_is_not_the_stored_one_is_complained_of() -> None:
    assert any("last has read another of left" in line for line in told(telling(left="another")))
