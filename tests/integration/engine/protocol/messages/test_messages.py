"""Rule 6: a message is a hint. Losing, doubling, moving or poisoning one never loses or doubles work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.engine_fixture import Lab, change
from tests.support.random_plans import Spec


def put(lab: Lab, message: Any) -> None:
    lab.two.value("select pgmq.send(%s, %s::jsonb)", f"worker_{lab.namespace}_queue", json.dumps(message))


def poison(lab: Lab) -> list[tuple[Any, str]]:
    query = "select message, reason from tasker.poison_messages where queue_name = %s order by id"
    return [tuple(row) for row in lab.observer.rows(query, f"worker_{lab.namespace}_queue")]


def test_a_claim_that_rolls_back_leaves_the_message_and_the_step_as_they_were(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    before = lab.steps(task)

    with lab.one.connection.transaction(force_rollback=True):
        assert len(lab.one.claim()) == 1
        assert not lab.two.claim(), "taken by the open transaction"

    assert (lab.queue_depth(), lab.steps(task)) == (1, before)
    (claim,) = lab.two.claim()
    assert claim["task"] == task


def test_a_claimer_that_dies_in_its_transaction_loses_nothing(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    doomed = lab.session()
    doomed.connection.autocommit = False
    assert len(doomed.claim()) == 1

    lab.observer.execute("select pg_terminate_backend(%s)", doomed.pid)
    while lab.observer.value("select count(*) from pg_stat_activity where pid = %s", doomed.pid):
        pass

    (claim,) = lab.two.claim()
    assert claim["task"] == task


def test_a_claim_deletes_its_messages(lab: Lab) -> None:
    lab.submit(lab.chain(1), *({} for _ in range(5)))

    assert len(lab.one.claim(3)) == 3
    assert lab.queue_depth() == 2


def test_a_doubled_hint_is_dead_the_second_time_and_counted(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    put(lab, {"step_uuid": str(lab.steps(task)["s0"].workflow_step_uuid), "task_uuid": task})

    answer = lab.one.claim_answer()

    assert (len(answer["claims"]), answer["popped"]) == (1, 2)
    lab.one.finish(*answer["claims"])
    put(lab, {"step_uuid": answer["claims"][0]["step"], "task_uuid": task})
    late = lab.one.claim_answer()
    assert (late.get("claims"), late["dead"]) == (None, 1)
    assert not poison(lab), "a dead hint is no poison"


@pytest.mark.parametrize(
    "message", ["text", 7, None, [1], {}, {"step_uuid": "x"}, {"step_uuid": None}, {"step_uuid": {"a": 1}}]
)
def test_what_is_no_hint_is_moved_aside_and_the_rest_is_claimed(lab: Lab, message: Any) -> None:
    lab.submit(lab.chain(1), {}, {})
    put(lab, message)

    answer = lab.one.claim_answer()

    assert len(answer["claims"]) == 2
    assert [moved for moved, _ in poison(lab)] == [message]
    assert lab.queue_depth() == 0


def test_a_hint_to_an_unknown_step_is_moved_aside(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    put(lab, {"step_uuid": "00000000-0000-7000-8000-000000000001"})

    answer = lab.one.claim_answer()

    assert len(answer["claims"]) == 1
    assert [reason for _, reason in poison(lab)] == ["unknown step"]


def test_poison_stays_in_the_queue_when_the_claim_rolls_back(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    put(lab, "text")

    with lab.one.connection.transaction(force_rollback=True):
        lab.one.claim()

    assert (lab.queue_depth(), poison(lab)) == (2, [])


def test_a_hint_alone_claims_nothing_that_is_not_enqueued(lab: Lab) -> None:
    """A late message to a pending step must not start it before its parents."""
    task = lab.submit_one(lab.chain())
    put(lab, {"step_uuid": str(lab.steps(task)["s1"].workflow_step_uuid)})

    claims = lab.one.claim()

    assert [claim["name"] for claim in claims] == ["s0"]
    assert lab.states(task)["s1"] == "pending"


def test_a_released_step_is_hinted_again(lab: Lab) -> None:
    _, claims = lab.running(lab.chain(1))
    assert lab.queue_depth() == 0

    lab.one.advance(change("release", claims["s0"]))

    assert lab.queue_depth() == 1
    assert [claim["step"] for claim in lab.two.claim()] == [claims["s0"]["step"]]


def test_a_change_and_its_messages_are_one_transaction(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    with lab.one.connection.transaction(force_rollback=True):
        lab.one.finish(claims["s0"])

    assert (lab.queue_depth(), lab.states(task)["s0"]) == (0, "in_progress")


def test_a_claim_brings_the_context_and_every_ancestor_s_result_once(lab: Lab) -> None:
    plan = lab.plan(
        Spec("a"),
        Spec("b", depends_on=("a",)),
        Spec("c", depends_on=("b",)),
        Spec("d", depends_on=("b",)),
        Spec("other"),
    )
    task = lab.submit_one(plan, context={"big": "x" * 1000})
    lab.one.finish(*lab.one.claim())
    lab.one.finish(*lab.one.claim())

    answer = lab.one.claim_answer()

    assert [claim["name"] for claim in answer["claims"]] == ["c", "d"]
    assert list(answer["tasks"]) == [task]
    assert answer["tasks"][task]["context"] == {"big": "x" * 1000}
    assert answer["results"][task] == {"a": [0, {"by": "a"}], "b": [1, {"by": "b"}]}
    assert json.dumps(answer).count("x" * 1000) == 1
