"""A claim's answer is bounded: what does not fit is claimed by the next one (rule 20)."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.engine_fixture import Lab, ok, retry
from tests.support.random_plans import RetryPolicy, Spec

KIBI = 1024


def big_context(number: int) -> dict[str, str]:
    """About 64 KiB that do not compress."""
    return {"text": Random(number).randbytes(32 * KIBI).hex()}


def test_a_claim_stops_before_its_answer_grows_too_large_and_loses_nothing(lab: Lab) -> None:
    tasks = lab.submit(lab.chain(1), *({"context": big_context(number)} for number in range(10)))

    first = lab.one.claim(max_claim_bytes=200 * KIBI)
    assert 1 < len(first) < 10
    rest = [claim for _ in range(10) for claim in lab.two.claim(max_claim_bytes=200 * KIBI)]

    assert sorted(claim["task"] for claim in [*first, *rest]) == sorted(tasks)
    lab.one.finish(*first)
    lab.two.finish(*rest)
    assert {lab.task(task).state for task in tasks} == {"complete"}


def test_claim_counts_what_is_sent_and_not_what_is_stored_compressed(lab: Lab) -> None:
    """64 KiB of one letter take less than a kilobyte in the table."""
    lab.submit(lab.chain(2), *({"context": {"text": "a" * 64 * KIBI}} for _ in range(10)))

    first = lab.one.claim(max_claim_bytes=200 * KIBI)
    assert len(first) == 3
    lab.one.advance(*(ok(claim, {"text": "b" * 64 * KIBI}) for claim in first))
    assert len(lab.one.claim(max_claim_bytes=300 * KIBI)) == 2, "their contexts and the results before them"


def test_inputs_are_answered_in_parts_and_the_rest_is_named(lab: Lab) -> None:
    """A worker reads so what a hand-over or a submission left to it."""
    tasks = lab.submit(lab.chain(1), *({"context": {"text": "a" * 64 * KIBI}} for _ in range(5)))
    wanted, read = sorted(claim["step"] for claim in lab.one.claim()), []
    while wanted:
        answer = lab.one.core("inputs", {"steps": wanted, "max_bytes": 200 * KIBI})
        read.append(len(answer["tasks"]))
        wanted = answer.get("rest")
    assert read == [3, 2]
    assert len(tasks) == sum(read)


@pytest.mark.parametrize("way", ["claimed", "handed over"])
def test_checkpoints_beyond_the_bound_are_left_for_the_worker_to_read(lab: Lab, way: str) -> None:
    plan = lab.plan(*(Spec(f"s{n}", retry=RetryPolicy(max_attempts=2, backoff_base_ms=0)) for n in range(5)))
    _, claims = lab.running(plan)
    for claim in claims.values():
        large = {"cursor": claim["name"], "items_processed": 1, "accumulated_results": "c" * 4_000_000}
        lab.one.core("checkpoint", {"step": claim["step"], "token": claim["token"], **large})
    lab.one.advance(*(retry(claim, delay_ms=0) for claim in claims.values()))
    promoted = lab.one.call("due", lab.one.args(slots=5 if way == "handed over" else 0))
    again = promoted["claims"] if way == "handed over" else lab.one.claim()

    assert sorted(bool(claim["later"]) for claim in again) == [False] * 4 + [True]
    (left,) = [claim for claim in again if claim["later"]]
    own = lab.one.core("inputs", {"steps": [], "own": [left["step"]]})["own"]
    assert (left["checkpoint"], own[left["step"]]["checkpoint"]["cursor"]) == (None, left["name"])


def test_what_several_steps_read_counts_once(lab: Lab) -> None:
    plan = lab.plan(Spec("big"), *(Spec(f"s{i}", depends_on=("big",)) for i in range(10)), name="shared")
    _, claims = lab.running(plan)
    lab.one.advance(ok(claims["big"], big_context(1)))

    assert len(lab.one.claim(max_claim_bytes=100 * KIBI)) == 10


def test_the_first_of_different_inputs_that_fit_are_claimed_and_the_others_next(lab: Lab) -> None:
    plan = lab.plan(
        *(Spec(f"big{i}") for i in range(4)), *(Spec(f"s{i}", depends_on=(f"big{i}",)) for i in range(4)), name="own"
    )
    _, claims = lab.running(plan)
    lab.one.advance(*(ok(claim, big_context(number)) for number, claim in enumerate(claims.values())))

    rounds = [[claim["name"] for claim in lab.one.claim(max_claim_bytes=200 * KIBI)] for _ in range(2)]

    assert rounds == [["s0", "s1", "s2"], ["s3"]]


def test_one_step_is_always_claimed_however_large_its_input_is(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1), context=big_context(1))

    claims = lab.one.claim(max_claim_bytes=1)

    assert [claim["task"] for claim in claims] == [task]


def test_the_results_that_handlers_read_count_as_well(lab: Lab) -> None:
    tasks = lab.submit(lab.chain(2), *({} for _ in range(10)))
    lab.one.advance(*(ok(claim, big_context(number)) for number, claim in enumerate(lab.one.claim())))

    claims = [lab.two.claim(max_claim_bytes=200 * KIBI) for _ in range(10)]

    assert 1 < len(claims[0]) < 10
    assert sorted(claim["task"] for each in claims for claim in each) == sorted(tasks)


def test_what_handlers_read_of_a_task_that_the_worker_knows_is_not_told_again(lab: Lab) -> None:
    """A wide task is claimed in many parts, and what each of its steps reads may be as large as it is wide."""
    first = Spec("first")
    known = lab.submit_one(lab.plan(first, *(Spec(f"s{n}", depends_on=("first",)) for n in range(3)), name="known"))
    lab.one.advance(ok(lab.one.claim()[0], {"large": 1}))
    other = lab.submit_one(lab.chain(1))
    answer = lab.one.claim_answer(known=[known])

    assert sorted({claim["task"] for claim in answer["claims"]}) == sorted({known, other})
    assert (answer["tasks"].keys(), answer["results"]) == ({other}, {})
    again = {**lab.one.args(), "steps": [answer["claims"][0]["step"]], "known": [known]}
    assert (dead := lab.one.core("claim", again))["claims"] is None
    assert (dead["dead"], dead["tasks"]) == (1, {})
