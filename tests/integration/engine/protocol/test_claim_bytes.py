"""A claim's answer is bounded: what does not fit is claimed by the next one (rule 20)."""

from __future__ import annotations

from random import Random

from tests.support.engine_fixture import Lab

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


def test_one_step_is_always_claimed_however_large_its_input_is(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1), context=big_context(1))

    claims = lab.one.claim(max_claim_bytes=1)

    assert [claim["task"] for claim in claims] == [task]
