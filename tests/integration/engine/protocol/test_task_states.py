"""Rules 10 and 11: a task walks the shortest legal path once per write, and every step of it is in the history."""

from __future__ import annotations

import pytest

from tasker.engine.states.task import TaskPath
from tests.support import paths
from tests.support.engine_fixture import FAILURE, Lab, change, fail, operator, retry, verdict
from tests.support.random_plans import RetryPolicy, Spec


def path(states: TaskPath) -> str:
    return ">".join(states)


def test_one_write_evaluates_a_task_once_however_many_results_it_carries(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(*(Spec(f"s{i}") for i in range(5)), Spec("end", depends_on=("s0", "s1"))))

    lab.one.finish(*(claims[f"s{i}"] for i in range(4)))

    assert lab.task_paths(task) == [path(paths.TASK_SUBMIT), path(paths.TASK_MORE_STEPS)]


def test_a_task_waits_for_dependencies_while_siblings_run_and_nothing_is_ready(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b"))))

    lab.one.finish(claims["a"])

    assert lab.task(task).state == "waiting_for_dependencies"
    assert lab.task_paths(task)[1:] == [path(paths.TASK_WAIT_FOR_SIBLINGS)]
    lab.one.finish(claims["b"])
    assert lab.task(task).state == "steps_in_process"


def test_a_result_that_changes_nothing_for_the_task_writes_no_history_of_it(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(*(Spec(f"s{i}") for i in range(4))))
    lab.one.finish(claims["s0"])
    lab.one.finish(claims["s1"])

    assert lab.task(task).state == "waiting_for_dependencies"
    assert len(lab.task_paths(task)) == 2


def test_a_permanent_failure_does_not_stop_independent_branches(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("bad"), Spec("good"), Spec("after", depends_on=("good",))))

    lab.one.advance(fail(claims["bad"]))
    assert lab.task(task).state == "waiting_for_dependencies"
    lab.one.finish(claims["good"])
    assert lab.task(task).state == "steps_in_process"
    answer = lab.one.finish(*lab.one.claim())

    assert answer["finished"] == {task: "error"}
    assert lab.states(task) == {"bad": "error", "good": "complete", "after": "complete"}


def test_a_failed_task_of_which_a_person_mends_one_of_two_steps_has_not_ended_again(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("first"), Spec("second")))
    lab.one.advance(fail(claims["first"]), fail(claims["second"]))
    mend = {"task": task, "kind": "complete", "r": {}}

    answers = [lab.one.call("operator_change", {**mend, "step": step}) for step in ("first", "second")]

    assert [answer.get("finished") for answer in answers] == [None, {task: "complete"}]


def test_a_blocked_task_gives_up_in_the_same_transaction(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    answer = lab.one.advance(fail(claims["s0"]))

    assert answer["finished"] == {task: "error"}
    assert lab.task_paths(task)[-1] == path(paths.TASK_GIVE_UP)
    assert (lab.task(task).state, lab.task(task).complete) == ("error", True)
    assert lab.states(task)["s1"] == "pending"


def test_a_blocked_task_waits_for_a_person_where_it_is_asked_to(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    lab.one.advance(fail(claims["s0"]), on_blocked="wait")

    assert (lab.task(task).state, lab.task(task).complete) == ("blocked_by_failures", False)
    assert lab.task_paths(task)[-1] == path(paths.TASK_BLOCK)
    lab.one.advance(operator("reset", lab.steps(task)["s0"]), on_blocked="wait")
    lab.one.run_all()
    assert lab.task(task).state == "complete"


@pytest.mark.parametrize("parked", [retry, fail])
def test_a_task_is_not_blocked_while_a_step_waits_for_its_retry(lab: Lab, parked: type) -> None:
    task, claims = lab.running(lab.plan(Spec("bad"), Spec("again")))

    lab.one.advance(fail(claims["bad"]))
    lab.one.advance(retry(claims["again"], delay_ms=0))

    assert not lab.task(task).complete
    lab.one.call("due", lab.one.args())
    (second,) = lab.one.claim()
    answer = lab.one.advance(parked(second, **({"delay_ms": 0} if parked is retry else {})))
    assert bool(answer.get("finished")) is (parked is fail)


def test_a_failure_that_will_be_retried_moves_the_task_to_waiting_for_retry_and_back(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))
    assert lab.task(task).state == "waiting_for_retry"

    lab.one.call("due", lab.one.args())

    assert lab.task(task).state == "steps_in_process"
    assert lab.task_paths(task)[1:] == [path(paths.TASK_WAIT_FOR_RETRY), path(paths.TASK_RETRY)]
    assert lab.step_paths(task, "s0")[2:] == [">".join(paths.STEP_RETRY_LATER), ">".join(paths.STEP_PROMOTE)]


def test_an_operator_s_reset_opens_a_task_in_error_again(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    lab.one.advance(fail(claims["s0"]))
    step = lab.steps(task)["s0"]

    lab.one.advance(operator("reset", step))

    assert lab.task_paths(task)[-1] == path(paths.TASK_REOPEN)
    assert (lab.task(task).complete, lab.task(task).completed_at) == (False, None)
    (claim,) = lab.one.claim()
    assert (claim["attempt"], claim["token"] > claims["s0"]["token"]) == (1, True)
    lab.one.finish(claim)
    lab.one.run_all()
    assert lab.task(task).state == "complete"


@pytest.mark.parametrize("kind", ["resolve", "complete"])
def test_a_step_that_a_person_settles_lets_its_dependents_run(lab: Lab, kind: str) -> None:
    task, claims = lab.running(lab.chain())
    lab.one.advance(fail(claims["s0"]))

    lab.one.advance(operator(kind, lab.steps(task)["s0"], r={"by": "hand"}))
    answer = lab.one.claim_answer()
    lab.one.finish(*answer["claims"])

    assert lab.task(task).state == "complete"
    assert (answer.get("results") or {}).get(task, {}) == ({"s0": [0, {"by": "hand"}]} if kind == "complete" else {})


def test_a_task_with_two_failures_stays_in_error_when_one_of_them_is_resolved(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    lab.one.advance(fail(claims["a"]), fail(claims["b"]))
    before = lab.task(task)

    lab.one.advance(operator("resolve", lab.steps(task)["a"]))

    after = lab.task(task)
    assert (after.state, after.complete) == ("error", True)
    assert after.completed_at == before.completed_at, "it ended when it ended"


def test_a_released_claim_uses_no_attempt(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))

    lab.one.advance(change("release", claims["s0"], n={"reason": "draining"}))

    step = lab.steps(task)["s0"]
    assert (step.state, step.attempts, step.claim_token > claims["s0"]["token"]) == ("enqueued", 0, True)
    assert lab.step_paths(task, "s0")[-1] == ">".join(paths.STEP_RELEASE)
    assert len(lab.task_paths(task)) == 1, "the task has not moved"
    (again,) = lab.two.claim()
    assert again["attempt"] == 1


def test_ready_steps_are_handed_to_the_caller_up_to_its_free_slots(lab: Lab) -> None:
    plan = lab.plan(Spec("root"), *(Spec(f"c{i}", depends_on=("root",)) for i in range(5)))
    task, claims = lab.running(plan)

    answer = lab.one.finish(claims["root"], slots=2)

    assert [claim["name"] for claim in answer["claims"]] == ["c0", "c1"]
    assert lab.step_paths(task, "c0") == [">".join(paths.STEP_HAND_OVER)]
    assert lab.queue_depth() == 3
    step = lab.steps(task)["c0"]
    assert (str(step.worker_uuid), step.attempts, step.claim_token) == (lab.one.worker, 1, answer["claims"][0]["token"])
    lab.one.finish(*answer["claims"])
    lab.one.run_all()
    assert lab.task(task).state == "complete"


def test_a_step_with_its_attempts_used_up_keeps_the_policy_of_its_template(lab: Lab) -> None:
    plan = lab.plan(Spec("s", retry=RetryPolicy(max_attempts=7)))
    task, _ = lab.running(plan)

    assert lab.steps(task)["s"].max_attempts == 7


def test_a_task_that_has_ended_in_error_takes_nothing_but_an_operator_s_action(lab: Lab) -> None:
    """A sweep that looked before its end wants to fail a step of it, or to release one."""
    task, claims = lab.running(lab.chain(2))
    lab.one.advance(fail(claims["s0"]))
    assert lab.task(task).state == "error"
    before = (lab.task(task), lab.steps(task))
    child = lab.steps(task)["s1"]

    answers = [lab.one.advance(operator(kind, child, e=FAILURE)) for kind in ("fail", "unhold")]

    assert [verdict(answer, {"step": str(child.workflow_step_uuid)}) for answer in answers] == ["cancelled"] * 2
    assert (lab.task(task), lab.steps(task)) == before
