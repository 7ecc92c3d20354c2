"""Rule 5 and the processor: what cannot be stored fails alone, what somebody holds comes back, the rest is stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tasker.execution.in_flight import ReleasedClaim
from tasker.handlers.claims import Failure, Success, Verdict
from tasker.json_values import JsonText
from tasker.process.releases import release_claims
from tests.integration.engine.protocol.conftest import Orchestra, result_of
from tests.support.engine_fixture import ok
from tests.support.random_plans import RetryPolicy, Spec, StepType, create_steps

REFUSED = ['"\\u0000"', '"\\ud800"', '{"a":"x\\u0000y"}', "{not json"]


@pytest.mark.parametrize("text", REFUSED)
async def test_a_result_that_the_database_refuses_fails_alone(orchestra: Orchestra, text: str) -> None:
    lab = orchestra.lab
    plan = lab.chain(2)
    lab.submit(plan, *({} for _ in range(7)))
    claims = lab.one.claim()
    results = [result_of(plan, claim) for claim in claims]
    results[4] = replace(results[4], outcome=Success(JsonText(text)))

    advanced = await orchestra.process(*results)

    culprit = claims[4]["step"]
    assert advanced.refused == {culprit: Verdict.NOT_STORABLE}
    assert [lab.states(claim["task"])["s0"] for claim in claims] == ["complete"] * 4 + ["error"] + ["complete"] * 2
    assert advanced.finished == {claims[4]["task"]: "error"}
    error = lab.observer.value("select error from tasker.step_failures where workflow_step_uuid = %s", culprit)
    assert (error["error_type"], error["retryable"]) == ("not_storable", False)
    assert "cannot be stored" in error["message"]


async def test_a_result_of_which_not_even_the_failure_is_taken_stops_no_other(
    orchestra: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    lab.submit(plan, *({} for _ in range(5)))
    claims = lab.one.claim()
    stuck = claims[1]["step"]
    lab.observer.execute(
        f"alter table tasker.step_moves add constraint stuck check (workflow_step_uuid <> '{stuck}') not valid"
    )
    advanced = await orchestra.process(*(result_of(plan, claim) for claim in claims))

    assert advanced.refused == {stuck: Verdict.NOT_STORABLE}
    assert sum(lab.task(claim["task"]).state == "complete" for claim in claims) == 4
    assert any("result_stuck" in line for line in caplog.messages), "a person is told"


async def test_a_claim_whose_note_the_database_refuses_is_given_back_without_it(orchestra: Orchestra) -> None:
    """A reason may hold what a stranger's import error says."""
    lab = orchestra.lab
    plan = lab.chain(1)
    lab.submit(plan, *({} for _ in range(3)))
    claims = lab.one.claim()
    reasons = ("closing", "cannot import \0", "closing")
    given = [
        ReleasedClaim(result_of(plan, claim).claim, {"reason": reason})
        for claim, reason in zip(claims, reasons, strict=True)
    ]
    await release_claims(orchestra.processor, orchestra.caller(), given)

    assert [lab.steps(claim["task"])["s0"].state for claim in claims] == ["enqueued"] * 3
    assert [lab.steps(claim["task"])["s0"].attempts for claim in claims] == [0] * 3


async def test_several_culprits_are_each_found(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    lab.submit(plan, *({} for _ in range(9)))
    claims = lab.one.claim()
    bad = {0, 5, 8}
    results = [
        replace(result, outcome=Success(JsonText(REFUSED[0]))) if i in bad else result
        for i, result in enumerate(result_of(plan, claim) for claim in claims)
    ]

    advanced = await orchestra.process(*results)

    assert set(advanced.refused) == {claims[i]["step"] for i in bad}
    assert sorted(advanced.finished.values()) == ["complete"] * 6 + ["error"] * 3


async def test_metadata_that_the_database_refuses_fails_its_step_alone(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("a"), Spec("b"))
    task, claims = lab.running(plan)
    bad = result_of(plan, claims["a"])
    bad = replace(bad, outcome=replace(bad.outcome, metadata={"note": "a\0b"}))

    await orchestra.process(bad, result_of(plan, claims["b"]))

    assert lab.states(task) == {"a": "error", "b": "complete"}


@pytest.mark.parametrize(
    "message",
    ["NaN is no Infinity", "실패했습니다", "it broke 💥", "nul \0 inside", "half \ud83d of a pair", "tab\tand\nline"],
)
async def test_a_failure_is_stored_whatever_its_message_says(orchestra: Orchestra, message: str) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    _, claims = lab.running(plan)
    failure = Failure(
        message, "ValueError", retryable=False, error_code="E\0" if "\0" in message else "E1", metadata={"n": 1}
    )

    await orchestra.process(result_of(plan, claims["s0"], failure=failure))

    error = lab.observer.value(
        "select error from tasker.step_failures where workflow_step_uuid = %s", claims["s0"]["step"]
    )
    if message.isprintable() or "\t" in message:
        assert (error["message"], error["metadata"]) == (message, {"n": 1})
    else:
        assert error["message"] == message.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")


@pytest.mark.parametrize("metadata", [{"x": float("nan")}, {"x": float("inf")}, {"x": object}, {"x": "a\0"}])
async def test_a_failure_is_stored_whatever_its_metadata_hold(
    orchestra: Orchestra, metadata: dict[str, object]
) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    task, claims = lab.running(plan)

    await orchestra.process(
        result_of(plan, claims["s0"], failure=Failure("no", "X", retryable=False, metadata=metadata))
    )

    assert lab.states(task) == {"s0": "error"}
    error = lab.observer.value(
        "select error from tasker.step_failures where workflow_step_uuid = %s", claims["s0"]["step"]
    )
    assert error["message"] == "no"


async def test_results_of_a_task_that_somebody_holds_are_to_be_brought_again(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    held, free = lab.submit(plan, {}, {})
    results = {claim["task"]: result_of(plan, claim) for claim in lab.one.claim()}

    with lab.transaction(lab.one):
        lab.one.execute("select from tasker.tasks where task_uuid = %s for no key update", held)
        advanced = await orchestra.process(*results.values(), wait=False)

    assert [task for task, each in results.items() if advanced.comes_again(each.claim.step_uuid)] == [held]
    assert advanced.finished == {free: "complete"}
    assert not advanced.refused
    assert (await orchestra.process(results[held])).finished == {held: "complete"}


async def test_the_answer_names_the_shortest_delay_of_all_its_retries(orchestra: Orchestra) -> None:
    """Also when the batch had to be halved: the timer of promotion relies on it."""
    lab = orchestra.lab
    plan = lab.plan(
        Spec("soon", retry=RetryPolicy(backoff_base_ms=100)),
        Spec("bad"),
        Spec("late", retry=RetryPolicy(backoff_base_ms=9000)),
    )
    _, claims = lab.running(plan)
    again = Failure("try later", "X", retryable=True)

    advanced = await orchestra.process(
        result_of(plan, claims["soon"], failure=again),
        replace(result_of(plan, claims["bad"]), outcome=Success(JsonText(REFUSED[0]))),
        result_of(plan, claims["late"], failure=again),
    )

    assert advanced.retry_in_ms == 100


async def test_an_expansion_is_planned_again_when_the_graph_has_changed(orchestra: Orchestra) -> None:
    """Another decision commits between the plan and the write, once; the processor plans again and succeeds."""
    lab = orchestra.lab
    plan = lab.plan(
        Spec("left", StepType.DECISION),
        Spec("right", StepType.DECISION),
        Spec("a", depends_on=("left",)),
        Spec("b", depends_on=("right",)),
        Spec("join", StepType.DEFERRED, ("a", "b")),
    )
    task, claims = lab.running(plan)
    lab.one.execute("select from tasker.tasks")
    lab.one.connection.autocommit = False
    lab.one.advance(ok(claims["right"], create_steps(), gv=0))

    expansion = lab.later(_run, orchestra, result_of(plan, claims["left"], create_steps("a")))
    while not lab.observer.value(
        "select count(*) from pg_stat_activity where %s = any (pg_blocking_pids(pid))", lab.one.pid
    ):
        assert not expansion.done()
    lab.one.connection.commit()
    lab.one.connection.autocommit = True
    expansion.result(timeout=30)

    assert lab.states(task) == {"left": "complete", "right": "complete", "a": "enqueued", "join": "pending"}
    lab.one.run_all()
    assert lab.task(task).state == "complete"


def _run(orchestra: Orchestra, result: object) -> object:
    """On a thread with an event loop of its own, because the test's loop must stay free to let go of the lock."""
    import asyncio
    import random

    from tasker.db.connection import Connection
    from tasker.engine.calls import Engine
    from tasker.orchestration.results import ResultProcessor

    async def process() -> object:
        connection = Connection(orchestra.lab.url)
        processor = ResultProcessor(Engine(connection, orchestra.engine.messaging), random.Random(3))
        advanced = await processor.process([result], orchestra.caller())  # type: ignore[list-item]
        await connection.close()
        return advanced

    return asyncio.run(process())


async def test_an_outcome_that_cannot_be_followed_fails_the_decision_and_creates_nothing(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    task, claims = lab.running(plan)

    await orchestra.process(result_of(plan, claims["choice"], create_steps("nobody")))

    assert (lab.states(task), lab.task(task).state) == ({"choice": "error"}, "error")
    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    assert (error["error_type"], "nobody" in error["message"]) == ("invalid_outcome", True)


async def test_expansions_of_one_batch_are_written_one_after_the_other(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(
        Spec("left", StepType.DECISION),
        Spec("right", StepType.DECISION),
        Spec("a", depends_on=("left",)),
        Spec("b", depends_on=("right",)),
        Spec("join", StepType.DEFERRED, ("a", "b")),
    )
    task, claims = lab.running(plan)

    await orchestra.process(
        result_of(plan, claims["left"], create_steps("a")), result_of(plan, claims["right"], create_steps("b"))
    )

    assert sorted(lab.states(task)) == ["a", "b", "join", "left", "right"]
    assert lab.task(task).graph_version == 2


async def test_a_repeated_expansion_is_planned_on_the_grown_graph_and_changes_nothing(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    task, claims = lab.running(plan)
    result = result_of(plan, claims["choice"], create_steps("a"))
    await orchestra.process(result)
    before = (lab.task(task), lab.steps(task))

    again = await orchestra.process(result)

    assert (lab.task(task), lab.steps(task)) == before
    assert not again.refused
    assert not again.comes_again(result.claim.step_uuid)
