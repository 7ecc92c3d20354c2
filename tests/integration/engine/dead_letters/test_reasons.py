"""The reason of a dead letter tells whether attempts were used up."""

from __future__ import annotations

import pytest

from tests.support.engine_fixture import Lab, fail
from tests.support.random_plans import Spec


@pytest.mark.parametrize(
    ("retryable", "reason"),
    [
        ((True,), "max_retries_exceeded"),
        ((False,), "permanent_failure"),
        ((False, False), "permanent_failure"),
        ((False, True), "max_retries_exceeded"),
    ],
)
def test_dead_letter_says_whether_attempts_were_used_up(lab: Lab, retryable: tuple[bool, ...], reason: str) -> None:
    task, claims = lab.running(lab.plan(*(Spec(f"s{number}") for number in range(len(retryable)))))
    pairs = zip(claims.values(), retryable, strict=True)
    lab.one.advance(*(fail(claim, e={"message": "no", "retryable": again}) for claim, again in pairs))

    query = "select array_agg(dlq_reason::text) from tasker.tasks_dlq where task_uuid = %s"
    assert lab.observer.value(query, task) == [reason]
