"""Rules 2 to 4: the token alone decides whether a result counts, and repeating anything changes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.engine_fixture import Item, Lab, change, fail, ok, operator, retry, verdict
from tests.support.random_plans import Spec


def test_a_result_under_the_current_token_is_accepted(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))

    answer = lab.one.finish(claims["s0"])

    assert verdict(answer, claims["s0"]) == "accepted"
    assert (lab.states(task), lab.task(task).state) == ({"s0": "complete"}, "complete")


@pytest.mark.parametrize("item", [ok, retry, fail])
def test_the_same_batch_brought_twice_changes_nothing_the_second_time(lab: Lab, item: type) -> None:
    """The answer to a commit may be lost: the batch is brought again."""
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    batch = [item(claims["a"]), item(claims["b"])]
    lab.one.advance(*batch)
    before = (lab.task(task), lab.steps(task), lab.task_paths(task), lab.queue_depth())

    again = lab.two.advance(*batch)

    assert {verdict(again, claim) for claim in claims.values()} == {"already_accepted"}
    assert (lab.task(task), lab.steps(task), lab.task_paths(task), lab.queue_depth()) == before
    assert not lab.refused(task)
    failures = lab.observer.value("select count(*) from tasker.step_failures where task_uuid = %s", task)
    assert failures == (0 if item is ok else 2)


def test_a_batch_of_new_and_repeated_results_is_judged_one_by_one(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    lab.one.finish(claims["a"])

    answer = lab.one.finish(claims["a"], claims["b"])

    assert verdict(answer, claims["a"]) == "already_accepted"
    assert answer["finished"] == {task: "complete"}


@pytest.mark.parametrize("end", ["release", "lost", "reset", "complete", "resolve"])
def test_a_result_under_an_older_token_is_stale_and_kept_as_evidence(lab: Lab, end: str) -> None:
    task, claims = lab.running(lab.plan(Spec("s"), Spec("other")))
    claim = claims["s"]
    lab.one.advance(*_take_away(lab, task, claim, end))
    before = lab.steps(task)["s"]
    assert before.claim_token > claim["token"], "tokens only grow"

    answer = lab.one.advance(ok(claim, {"late": True}))

    assert verdict(answer, claim) == "stale"
    assert lab.steps(task)["s"] == before
    (evidence,) = lab.refused(task)
    assert (evidence.verdict, evidence.claim_token) == ("stale", claim["token"])
    assert evidence.detail["result"] == {"late": True}
    assert str(evidence.worker_uuid) == lab.one.worker


def _take_away(lab: Lab, task: str, claim: Item, end: str) -> list[Item]:
    if end == "release":
        return [change("release", claim)]
    if end == "lost":
        return [retry(claim, n={"lost": True})]
    if end == "reset":
        lab.one.advance(fail(claim))
        return [operator("reset", lab.steps(task)["s"])]
    return [operator(end, lab.steps(task)["s"], r={"by": "hand"})]


def test_the_result_of_the_next_attempt_is_not_confused_with_the_first_one(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"]))
    (second,) = lab.two.claim()

    answer = lab.one.advance(ok(claims["s0"], {"attempt": 1}))
    lab.two.advance(ok(second, {"attempt": 2}))

    assert verdict(answer, claims["s0"]) == "stale"
    assert lab.observer.value("select result from tasker.step_results where task_uuid = %s", task) == {"attempt": 2}


def test_a_refused_result_never_fails_its_batch(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("b",))))
    lab.one.advance(change("release", claims["a"]))
    stranger = {**claims["a"], "step": "00000000-0000-7000-8000-000000000001"}

    answer = lab.one.finish(claims["a"], claims["b"], stranger)

    assert (verdict(answer, claims["a"]), verdict(answer, stranger)) == ("stale", "stale")
    assert lab.states(task) == {"a": "enqueued", "b": "complete", "c": "enqueued"}


def test_a_result_of_a_cancelled_task_is_answered_cancelled(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    lab.two.call("cancel", {"task": task})

    answer = lab.one.finish(claims["s0"])

    assert verdict(answer, claims["s0"]) == "cancelled"
    assert [row.verdict for row in lab.refused(task)] == ["cancelled"]
    assert set(lab.states(task).values()) == {"cancelled"}


def test_a_token_past_its_deadline_is_accepted_while_no_sweep_has_taken_it(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.set_time(seconds=3600)
    assert lab.steps(task)["s0"].deadline_at < lab.one.value("select tasker.now()")

    lab.one.finish(claims["s0"])

    assert lab.task(task).state == "complete"


def test_a_checkpoint_needs_the_current_token(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    args = {"step": claims["s0"]["step"], "cursor": 7, "items_processed": 7, "accumulated_results": {}}

    assert lab.one.core("checkpoint", {**args, "token": claims["s0"]["token"]})["checkpoint"]["cursor"] == 7
    before = lab.steps(task)["s0"]
    lab.one.advance(change("release", claims["s0"]))
    assert lab.one.core("checkpoint", {**args, "cursor": 8, "token": claims["s0"]["token"]}) == {"lost": True}
    (second,) = lab.two.claim()

    assert second["checkpoint"]["cursor"] == 7
    assert (before.state, before.attempts, second["attempt"]) == ("in_progress", 1, 1)


def test_a_step_whose_checkpoint_is_deleted_begins_at_its_top(lab: Lab) -> None:
    _, claims = lab.running(lab.chain(1))
    position = {"cursor": 7, "items_processed": 7, "accumulated_results": {}}
    lab.one.core("checkpoint", {**position, "step": claims["s0"]["step"], "token": claims["s0"]["token"]})
    lab.one.advance(change("release", claims["s0"]))

    lab.observer.execute("delete from tasker.step_checkpoints where workflow_step_uuid = %s", claims["s0"]["step"])

    (second,) = lab.two.claim()
    assert second.get("checkpoint") is None


def test_a_checkpoint_keeps_its_last_twenty_positions(lab: Lab) -> None:
    _, claims = lab.running(lab.chain(1))
    args = {"step": claims["s0"]["step"], "token": claims["s0"]["token"]}

    saved = [lab.one.core("checkpoint", {**args, "cursor": cursor})["checkpoint"] for cursor in range(25)]

    kept = [[position["cursor"] for position in checkpoint["history"]] for checkpoint in saved]
    assert kept == [list(range(max(0, cursor - 19), cursor + 1)) for cursor in range(25)]


def test_a_checkpoint_moves_the_deadline(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    before = lab.steps(task)["s0"].deadline_at
    lab.one.set_time(seconds=20)

    lab.one.core("checkpoint", {"step": claims["s0"]["step"], "token": claims["s0"]["token"], "cursor": 1})

    assert lab.steps(task)["s0"].deadline_at > before


def test_a_step_whose_handler_begins_late_has_its_whole_time_from_then_on(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    before = lab.steps(task)["s0"]
    lab.one.set_time(seconds=20)
    step = str(before.workflow_step_uuid)
    args = {"step": step, "token": before.claim_token, "timeout_ms": 3000, "grace_ms": 2000}

    assert lab.one.core("begin", args) == {}
    after = lab.steps(task)["s0"]
    assert after.deadline_at == after.updated_at + timedelta(seconds=5)
    assert after.started_at == before.started_at, "that is when it was claimed"

    lab.one.advance(change("release", claims["s0"]))
    lab.two.claim()
    assert lab.one.core("begin", args) == {"lost": True}


def test_the_beat_names_the_tokens_that_are_no_longer_valid(lab: Lab) -> None:
    lab.one.start_worker()
    _, claims = lab.running(lab.plan(Spec("a"), Spec("b"), Spec("c")))
    held = [[claim["step"], claim["token"]] for claim in claims.values()]
    lab.two.advance(retry(claims["b"], n={"lost": True}))

    answer = lab.one.core("worker", {"action": "beat", "worker": lab.one.worker, "lease_ms": 1000, "held": held})

    assert answer == {"known": True, "lost": [claims["b"]["step"]]}


def test_a_worker_that_was_stopped_learns_it_from_its_beat(lab: Lab) -> None:
    lab.one.start_worker()
    lab.two.core("worker", {"action": "stop", "worker": lab.one.worker, "lease_ms": 0})

    answer = lab.one.core("worker", {"action": "beat", "worker": lab.one.worker, "lease_ms": 1000, "held": []})

    assert answer == {"known": False}


def test_claims_whose_answer_was_lost_are_found_and_released_without_an_attempt(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    held = [[claims["a"]["step"], claims["a"]["token"]]]

    found = lab.one.core("reconcile", {"worker": lab.one.worker, "held": held})["items"]
    lab.one.advance(*({**row, "kind": "release"} for row in found))

    assert [row["s"] for row in found] == [claims["b"]["step"]]
    (again,) = lab.two.claim()
    assert (again["name"], again["attempt"]) == ("b", 1)
    assert not lab.two.core("reconcile", {"worker": lab.one.worker, "held": held})["items"]
    assert lab.step_paths(task, "b") == [
        "pending>enqueued",
        "enqueued>in_progress",
        "in_progress>enqueued",
        "enqueued>in_progress",
    ]


def test_a_held_step_under_another_token_counts_as_not_held(lab: Lab) -> None:
    _, claims = lab.running(lab.chain(1))

    found = lab.one.core("reconcile", {"worker": lab.one.worker, "held": [[claims["s0"]["step"], 0]]})["items"]

    assert [row["k"] for row in found] == [claims["s0"]["token"]]


def test_a_repeated_retry_changes_nothing_when_the_next_attempt_waits_in_the_queue(lab: Lab) -> None:
    """The answer was lost, the retry was promoted, and then the batch is brought again."""
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))
    lab.one.call("due", lab.one.args())
    assert lab.states(task) == {"s0": "enqueued"}
    before = lab.steps(task)["s0"]

    again = lab.one.advance(retry(claims["s0"], delay_ms=0))

    assert verdict(again, claims["s0"]) == "already_accepted"
    assert lab.steps(task)["s0"] == before
    assert not lab.refused(task)


def test_a_checkpoint_under_an_older_token_is_refused_while_the_step_runs_again_here(lab: Lab) -> None:
    """The handler that was given up is still running beside the next attempt, in the same worker."""
    _, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"]))
    (second,) = lab.one.claim()
    args = {"step": second["step"], "cursor": 9, "timeout_ms": 1, "grace_ms": 1}

    for function in ("checkpoint", "begin"):
        assert lab.one.core(function, {**args, "token": claims["s0"]["token"]}) == {"lost": True}
    assert lab.one.core("checkpoint", {**args, "token": second["token"], "cursor": 1})["checkpoint"]["cursor"] == 1
    lab.one.finish(second)
