"""Rules 2, 3 and 20: which results a worker may keep as inputs: those that this very write made final, and no other."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from tasker.engine.exchange import AdvanceResult, Result
from tasker.handlers.claims import Failure, Success
from tasker.json_values import JsonText
from tasker.orchestration.parked_results import ParkingProcessor
from tests.integration.engine.protocol.conftest import Orchestra, result_of
from tests.support.engine_fixture import change, operator
from tests.support.random_plans import Spec, StepType, create_steps


def kept(results: Iterable[Result], advanced: AdvanceResult) -> list[Result]:
    """Those that a worker which brought them may keep."""
    return [result for result in results if advanced.has_completed(result.claim)]


async def test_an_accepted_result_is_kept_and_a_failure_and_a_refused_result_are_not(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("good"), Spec("bad"), Spec("taken"), Spec("choice", StepType.DECISION))
    task, claims = lab.running(plan)
    lab.one.advance(operator("complete", lab.steps(task)["taken"], r={"by": "ops"}))
    results = {name: result_of(plan, claim) for name, claim in claims.items()}
    results["bad"] = result_of(plan, claims["bad"], failure=Failure("no", "X", retryable=True))
    results["choice"] = result_of(plan, claims["choice"], create_steps())

    advanced = await orchestra.process(*results.values())

    assert kept(results.values(), advanced) == [results["good"], results["choice"]]


async def test_a_result_that_was_brought_twice_is_kept_at_most_once(orchestra: Orchestra) -> None:
    """What the first answer said was lost with it; the inputs are read again then."""
    lab = orchestra.lab
    plan = lab.chain(2)
    _, claims = lab.running(plan)
    result = result_of(plan, claims["s0"])

    assert kept([result], await orchestra.process(result)) == [result]
    assert kept([result], await orchestra.process(result)) == []


async def test_of_two_results_of_one_step_the_one_under_the_older_token_is_not_kept(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(2)
    _, claims = lab.running(plan)
    late = result_of(plan, claims["s0"], {"by": "the former attempt"})
    lab.one.advance(change("release", claims["s0"]))
    (claim,) = lab.one.claim()
    current = result_of(plan, claim)

    assert kept([current, late], await orchestra.process(current, late)) == [current]


async def test_a_decision_that_failed_for_what_it_decided_is_not_kept(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    _, claims = lab.running(plan)

    advanced = await orchestra.process(result_of(plan, claims["choice"], create_steps("nobody")))

    assert not advanced.completed


async def test_what_the_database_did_not_store_is_not_kept_and_the_rest_of_its_batch_is(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("a"), Spec("b"))
    _, claims = lab.running(plan)
    good, bad = (
        result_of(plan, claims["a"]),
        replace(result_of(plan, claims["b"]), outcome=Success(JsonText('"\\u0000"'))),
    )

    assert kept([bad, good], await orchestra.process(bad, good)) == [good]


async def test_a_parked_result_is_not_kept(orchestra: Orchestra) -> None:
    """An operator or the orchestrator may still decide otherwise."""
    lab = orchestra.lab
    plan = lab.chain(2)
    task, claims = lab.running(plan)
    parking = ParkingProcessor(orchestra.engine, random.Random(1))

    advanced = await parking.process([result_of(plan, claims["s0"])], orchestra.caller())

    assert lab.states(task)["s0"] == "enqueued_for_orchestration"
    assert not advanced.completed
