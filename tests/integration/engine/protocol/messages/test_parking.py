"""The queued result path: a worker parks what it has, an orchestrator settles it."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.support.engine_fixture import Item, Lab, change, fail, ok, retry, verdict
from tests.support.random_plans import BATCHABLE, DECISION, Spec


def park(lab: Lab, *items: Item) -> Item:
    return lab.one.core("park", {"worker": lab.one.worker, "items": list(items)})


def test_a_parked_result_is_settled_under_the_same_token(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    parked = park(lab, ok(claims["s0"], {"n": 1}))["parked"]
    (item,) = lab.two.core("parked", {"steps": [parked[0]["step"]]})["items"]
    answer = lab.two.advance(
        {"s": item["step"], "t": item["task"], "k": item["token"], "w": item["worker"], "kind": item["kind"]}
    )

    assert not answer.get("verdicts")
    stored = "select result from tasker.step_results where workflow_step_uuid = %s"
    assert lab.observer.value(stored, claims["s0"]["step"]) == {"n": 1}
    assert item["result"] is None, "a plain step's is not read: nothing follows from it"
    assert lab.states(task) == {"s0": "complete", "s1": "enqueued"}
    assert lab.step_paths(task, "s0")[2:] == [
        "in_progress>enqueued_for_orchestration",
        "enqueued_for_orchestration>complete",
    ]


def test_a_parked_result_that_may_create_steps_comes_with_what_it_decided(lab: Lab) -> None:
    plan = lab.plan(Spec("d", DECISION), Spec("b", BATCHABLE), Spec("x", depends_on=("d",)))
    _, claims = lab.running(plan)
    park(lab, ok(claims["d"], {"to": "x"}), ok(claims["b"], {"rows": 3}))

    found = lab.two.core("parked", {"steps": [claims[name]["step"] for name in "db"] + [str(UUID(int=7))]})

    assert {item["name"]: item["result"] for item in found["items"]} == {"d": {"to": "x"}, "b": {"rows": 3}}
    assert found["unknown"] == [str(UUID(int=7))]


def test_parked_results_are_answered_in_parts_and_the_rest_is_named(lab: Lab) -> None:
    _, claims = lab.running(lab.plan(*(Spec(f"d{n}", DECISION) for n in range(5)), Spec("x", depends_on=("d0",))))
    park(lab, *(ok(claim, {"to": "x", "why": "w" * 65_536}) for claim in claims.values()))

    steps, parts = [claim["step"] for claim in claims.values()], []
    while steps:
        found = lab.two.core("parked", {"steps": steps, "max_bytes": 150_000})
        parts.append([item["name"] for item in found["items"] if item["result"]["to"] == "x"])
        assert found["unknown"] is None
        steps = found["rest"]

    assert parts == [["d0", "d1"], ["d2", "d3"], ["d4"]]


def test_a_parked_failure_says_how_it_is_to_be_retried(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    park(lab, retry(claims["a"], delay_ms=500), fail(claims["b"]))

    items = lab.two.core("parked", {"steps": [claim["step"] for claim in claims.values()]})["items"]

    assert {(item["name"], item["kind"], item.get("delay_ms")) for item in items} == {
        ("a", "retry", 500),
        ("b", "fail", None),
    }
    assert set(lab.states(task).values()) == {"enqueued_as_error_for_orchestration"}


def test_parking_twice_is_answered_already_accepted(lab: Lab) -> None:
    _, claims = lab.running(lab.chain())
    park(lab, ok(claims["s0"]))

    again = park(lab, ok(claims["s0"]))

    assert verdict(again, claims["s0"]) == "already_accepted"
    assert "parked" not in again


def test_parking_again_what_is_enqueued_anew_is_answered_already_accepted(lab: Lab) -> None:
    """The answer was lost, and the retry was due before the worker had its connection back."""
    task, claims = lab.running(lab.chain())
    park(lab, retry(claims["s0"], delay_ms=0))
    (item,) = lab.two.core("parked", {"steps": [claims["s0"]["step"]]})["items"]
    ended = {"s": item["step"], "t": task, "k": item["token"], "w": item["worker"], "kind": "retry", "d": 0}
    assert not lab.two.advance(ended).get("verdicts")
    lab.two.call("due", lab.two.args())
    assert lab.states(task)["s0"] == "enqueued"

    again = park(lab, retry(claims["s0"], delay_ms=0))

    assert verdict(again, claims["s0"]) == "already_accepted"
    assert lab.refused(task) == []


def test_a_result_of_a_cancelled_step_cannot_be_parked_and_is_kept_as_evidence(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    lab.two.call("cancel", {"task": task})

    answer = park(lab, ok(claims["s0"], {"late": True}))

    assert verdict(answer, claims["s0"]) == "cancelled"
    (evidence,) = lab.refused(task)
    assert (evidence.verdict, evidence.detail["result"]) == ("cancelled", {"late": True})


def test_a_late_result_of_a_lost_step_cannot_be_parked_and_is_kept_as_evidence(lab: Lab) -> None:
    """A worker that was frozen past its lease, and brings what it has."""
    task, claims = lab.running(lab.chain())
    lab.two.advance(retry(claims["s0"], n={"lost": True}))
    before = lab.steps(task)["s0"]

    answer = park(lab, ok(claims["s0"], {"late": True}))

    assert verdict(answer, claims["s0"]) == "stale"
    assert "parked" not in answer
    assert lab.steps(task)["s0"] == before
    (evidence,) = lab.refused(task)
    assert (evidence.verdict, evidence.detail["result"]) == ("stale", {"late": True})


@pytest.mark.parametrize("newest_first", [True, False])
def test_of_two_claims_of_one_step_in_a_batch_the_newer_one_is_parked(lab: Lab, newest_first: bool) -> None:
    """A worker that lost a step while its result could not be stored, and got it again."""
    task, claims = lab.running(lab.chain())
    former = claims["s0"]
    lab.two.advance(change("release", former, n={"reason": "lease_expired"}))
    newer = lab.running_claims(task)["s0"]
    items = [ok(newer, {"by": "newer"}), ok(former, {"by": "former"})]

    answer = park(lab, *items[:: 1 if newest_first else -1])

    assert [parked["token"] for parked in answer.get("parked", ())] == [newer["token"]]
    stored = "select result from tasker.step_results where workflow_step_uuid = %s"
    assert lab.observer.value(stored, newer["step"]) == {"by": "newer"}


def test_of_a_result_of_a_task_that_was_deleted_nothing_is_kept(lab: Lab) -> None:
    """Nobody would ever delete it: pruning goes by the tasks."""
    task, claims = lab.running(lab.chain())
    lab.two.call("cancel", {"task": task})
    lab.observer.execute("delete from tasker.workflow_steps where task_uuid = %s", task)
    lab.observer.execute("delete from tasker.task_details where task_uuid = %s", task)
    lab.observer.execute("delete from tasker.tasks where task_uuid = %s", task)

    answer = park(lab, ok(claims["s0"], {"late": True}))

    assert verdict(answer, claims["s0"]) == "stale"
    assert lab.refused(task) == []


def test_a_parked_step_has_no_lease_to_lose(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    park(lab, ok(claims["s0"]))

    assert lab.steps(task)["s0"].deadline_at is None


def test_cancel_waits_for_parking_and_takes_the_parked_step_with_it(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    with lab.transaction(lab.one):
        park(lab, ok(claims["s0"]))
        cancel = lab.later(lab.two.call, "cancel", {"task": task})
        lab.waits(cancel, lab.two, on=lab.one)
    cancel.result(timeout=30)

    assert set(lab.states(task).values()) == {"cancelled"}
    assert verdict(lab.one.finish(claims["s0"]), claims["s0"]) == "cancelled"
