"""Each reason why a step does not run: the situation on the database, and the sentence that is read about it."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from tasker.views.explain_reasons import NOBODY_AT_WORK, REASONS
from tests.integration.engine.explain.conftest import Told, at_work
from tests.support.engine_fixture import Lab, change, fail, new_step, ok, operator, retry
from tests.support.random_plans import DECISION, Spec


def chosen(lab: Lab) -> tuple[str, dict[str, dict[str, object]]]:
    """A task whose decision runs: `left` and `right` are for it to choose, `after` follows `left`."""
    plan = lab.plan(
        Spec("route", DECISION),
        Spec("left", depends_on=("route",)),
        Spec("right", depends_on=("route",)),
        Spec("after", depends_on=("left",)),
    )
    return lab.running(plan)


def test_a_step_waits_for_those_before_it_by_name(told: Told) -> None:
    at_work(told.lab.one, "w1")
    task, _ = told.lab.running(told.lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b"))))

    assert told.sentence(task, "c") == "waits for a, b"
    assert not told.task(task).needs_somebody


def test_what_waits_for_a_failed_step_says_that_it_never_runs_by_itself(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(2))
    told.lab.one.advance(fail(claims["s0"]))

    assert told.sentences(task) == {
        "s0": "failed in attempt 1 of 3: TestError: it broke",
        "s1": "waits for s0; s0 cannot complete without an operator",
    }
    failed, blocked = told.task(task).reasons
    assert failed.remedy(" --data-dir d").endswith(f"tasker task step reset {task} s0 --data-dir d")
    assert blocked.remedy().endswith(f"tasker task retry {task}")
    assert told.task(task).needs_somebody


def test_step_that_runs_once_with_an_unknown_outcome_says_what_an_operator_decides(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(1))
    told.lab.one.advance(fail(claims["s0"], e={"message": "lost", "error_type": "outcome_unknown"}))

    assert told.sentence(task, "s0") == "runs only once, and the outcome of attempt 1 is unknown: outcome_unknown: lost"
    remedy = told.one(task, "s0").remedy()
    assert f"tasker task step complete {task} s0 --result JSON" in remedy
    assert remedy.endswith(f"tasker task step reset {task} s0")
    assert told.task(task).needs_somebody


def test_a_running_step_says_where_since_when_and_how_long(told: Told) -> None:
    at_work(told.lab.one, "w1")
    task, _ = told.lab.running(told.lab.chain(1))
    told.at(5)

    assert told.sentence(task, "s0") == (
        "running on worker w1 since 12:00:00, attempt 1 of 3, until 12:00:40 at the latest, lease until 12:00:30"
    )


def test_a_step_beyond_its_time_says_that_it_is_taken_away(told: Told) -> None:
    at_work(told.lab.one, "w1", lease_ms=3_600_000)
    task, _ = told.lab.running(told.lab.chain(1))
    told.at(60)

    assert told.sentence(task, "s0") == "running on worker w1 since 12:00:00, and its timeout expired at 12:00:40"
    assert "refused" in told.one(task, "s0").remedy()


def test_a_step_of_a_dead_worker_says_so_and_that_somebody_is_needed_where_nobody_sweeps(told: Told) -> None:
    at_work(told.lab.one, "w1")
    task, _ = told.lab.running(told.lab.chain(1))
    told.at(31)

    assert told.sentence(task, "s0") == "was running on worker w1, which is gone: its lease expired at 12:00:30"
    assert told.one(task, "s0").remedy() == NOBODY_AT_WORK
    assert told.one(task, "s0").needs_somebody

    at_work(told.lab.two, "w2")
    assert "a sweep releases its claim" in told.one(task, "s0").remedy()
    assert not told.one(task, "s0").needs_somebody


def test_a_back_off_says_until_when_and_why(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(1))
    told.lab.one.advance(retry(claims["s0"], delay_ms=90_000))

    assert told.sentence(task, "s0") == (
        "back-off until 12:01:30 after attempt 1 of 3, which failed with TestError: it broke"
    )


def test_a_time_of_another_day_has_its_date(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(1))
    told.lab.one.advance(retry(claims["s0"], delay_ms=86_400_000))

    assert "until 2026-01-02 12:00:00 after" in told.sentence(task, "s0")


def test_a_retry_that_is_due_says_since_when(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(1))
    told.lab.one.advance(retry(claims["s0"]))
    told.at(10)

    assert told.sentence(task, "s0").startswith("due since 12:00:01 and not enqueued yet, after attempt 1 of 3")


def test_an_open_breaker_is_named_with_the_end_of_its_time(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(1))
    note = {"reason": "the circuit breaker of bank is open"}
    told.lab.one.advance(change("defer", claims["s0"], d=30_000, n=note))

    assert told.sentence(task, "s0") == "the circuit breaker of bank is open until 12:00:30"


@pytest.mark.parametrize("enqueued", [True, False])
def test_a_pause_says_who_and_why_and_how_it_ends(told: Told, enqueued: bool) -> None:
    lab = told.lab
    if enqueued:
        task = lab.submit_one(lab.chain(1))
    lab.one.core("pause", {"namespace": lab.namespace, "actor": "ada", "reason": "the bank is down"})
    if not enqueued:
        task = lab.submit_one(lab.chain(1))

    assert told.sentence(task, "s0") == (
        f"paused by ada because the bank is down: namespace {lab.namespace}, since 12:00:00"
    )
    assert told.one(task, "s0").remedy() == f"to end the pause: tasker resume {lab.namespace}"


def test_a_pause_without_a_reason_has_none(told: Told) -> None:
    task = told.lab.submit_one(told.lab.chain(1))
    told.lab.one.core("pause", {"task": task, "actor": "ada", "reason": ""})

    assert told.sentence(task, "s0") == f"paused by ada: task {task}, since 12:00:00"
    assert told.one(task, "s0").remedy() == f"to end the pause: tasker resume --task {task}"


def test_a_mark_that_a_pause_has_left_is_no_pause(told: Told) -> None:
    lab = told.lab
    at_work(lab.one, "w1")
    plan = lab.chain(1)
    lab.submit_one(plan)
    lab.one.core("pause", {"namespace": lab.namespace, "template": "chain", "actor": "ada", "reason": ""})
    task = lab.submit_one(plan)
    lab.observer.execute("delete from tasker.pauses")

    assert told.sentence(task, "s0") == "was paused by a pause that has ended"
    lab.one.core("repair", {"every_ms": 0})


def test_a_namespace_in_which_nobody_works_is_named(told: Told) -> None:
    lab = told.lab
    task = lab.submit_one(lab.chain(1))

    assert told.sentence(task, "s0") == (
        f"no live worker serves noop: no worker is running in the namespace {lab.namespace}"
    )
    assert told.one(task, "s0").remedy() == f"start one: tasker worker --namespace {lab.namespace} --handlers MODULE"

    at_work(lab.one, "w1").core("worker", {"action": "drain", "worker": lab.one.worker})
    assert told.sentence(task, "s0").endswith(", 1 worker about to stop")


def test_a_handler_that_every_worker_refused_is_named_with_them(told: Told) -> None:
    lab = told.lab
    for session, name in ((lab.one, "w1"), (lab.two, "w2")):
        at_work(session, name)
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"], n={"unserved": "noop"}))

    assert "not claimed yet: 10 free slots on w2" in told.sentence(task, "s0"), "the other one may have it"

    lab.two.advance(change("release", lab.two.claim()[0], n={"unserved": "noop"}))
    assert told.sentence(task, "s0") == "no live worker serves noop: refused by w1, w2, last since 12:00:00"


def test_a_step_that_only_a_newer_release_can_read_names_the_workers_that_are_too_old(told: Told) -> None:
    lab = told.lab
    for session, name in ((lab.one, "w1"), (lab.two, "w2")):
        at_work(session, name)
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"], n={"unreadable": "too old"}))

    assert "not claimed yet: 10 free slots on w2" in told.sentence(task, "s0"), "the other one may read it"

    lab.two.advance(change("release", lab.two.claim()[0], n={"unreadable": "too old"}))
    assert told.sentence(task, "s0") == (
        "left to workers of a newer release, which has stored its template: w1, w2 cannot read it, last since 12:00:00"
    )


def test_a_step_that_nobody_enqueued_waits_for_a_sweep(told: Told) -> None:
    lab = told.lab
    at_work(lab.one, "w1")
    task, claims = lab.running(lab.chain(2))
    lab.window = 0
    lab.one.finish(claims["s0"], window=0)
    lab.observer.execute("delete from tasker.ready_backlog")

    assert told.sentence(task, "s1") == "ready since 12:00:00, and not in the queue yet"
    lab.one.call("cancel", {"task": task, "reason": "", "actor": ""})


def test_a_held_step_says_how_many_are_ahead_of_it(told: Told) -> None:
    lab = told.lab
    at_work(lab.one, "w1")
    lab.window = 1
    lab.submit(lab.chain(1), *({} for _ in range(3)))
    lab.one.set_time(1)
    last = lab.submit_one(lab.chain(1))

    assert told.sentence(last, "s0") == (
        f"in the backlog behind 2 more urgent steps of {lab.namespace}; 1 step in its queue already (enqueue window)"
    )


def test_a_step_says_how_many_go_before_it_in_an_ordered_namespace(told: Told) -> None:
    at_work((lab := told.lab).one, "w1")
    lab.submit(lab.chain(1), *({"priority": 10} for _ in range(3)))
    words = f"waits for a free slot since 12:00:00, behind 3 steps of {lab.namespace} that are more urgent or older"
    assert told.sentence(lab.submit_one(lab.chain(1), priority=-10), "s0").startswith(words)


def test_a_queued_step_without_free_slots_says_so(told: Told) -> None:
    lab = told.lab
    at_work(lab.one, "w1", concurrency=1)
    _, claims = lab.running(lab.chain(1))
    held = [[claim["step"], claim["token"]] for claim in claims.values()]
    lab.one.core("worker", {"action": "beat", "worker": lab.one.worker, "lease_ms": 30_000, "held": held})
    waiting = lab.submit_one(lab.chain(1))

    assert told.sentence(waiting, "s0") == (
        "queued since 12:00:00, not claimed: no free slots, 1 of 1 taken on w1; 1 step in the queue"
    )


def test_a_queued_step_whose_workers_sleep_says_so(told: Told) -> None:
    lab = told.lab
    at_work(lab.one, "w1").core("worker", {"action": "sleep", "worker": lab.one.worker})
    task = lab.submit_one(lab.chain(1))

    assert told.sentence(task, "s0") == (
        "queued since 12:00:00, not claimed: no worker awake, asleep: w1; message sent at 12:00:00"
    )


@pytest.mark.parametrize("kind", ["ok", "retry"])
def test_a_parked_result_waits_for_an_orchestrator(told: Told, kind: str) -> None:
    lab = told.lab
    task, claims = lab.running(lab.chain(1))
    lab.one.call("park", lab.one.args(items=[{"ok": ok, "retry": retry}[kind](claims["s0"])]))

    assert told.sentence(task, "s0") == "its result is stored since 12:00:00: parked, no orchestrator at work"
    assert told.one(task, "s0").remedy() == "start one: tasker orchestrator"

    at_work(lab.two, "o1", "orchestrator")
    assert told.sentence(task, "s0") == "its result is stored since 12:00:00 and waits for an orchestrator"

    lab.one.core("pause_queue", {"queue": "orchestration_step_results", "actor": "ada", "reason": "audit"})
    assert told.sentence(task, "s0") == (
        "its result is stored since 12:00:00: queue orchestration_step_results is paused by ada because audit, "
        "since 12:00:00"
    )


def test_a_refused_result_is_told_beside_what_the_step_does_now(told: Told) -> None:
    lab = told.lab
    at_work(lab.one, "w1")
    at_work(lab.two, "w2")
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"]))
    assert lab.two.claim()
    lab.one.advance(ok(claims["s0"]))

    running, refused = (each.sentence(UTC) for each in told.task(task, "s0").reasons)
    assert running.startswith("running on worker w2")
    assert refused == "a result of worker w1 was refused at 12:00:00 (stale): its claim had ended before"


def test_a_step_that_a_decision_may_create_is_told_and_one_that_it_left_out_only_when_asked(told: Told) -> None:
    lab = told.lab
    task, claims = chosen(lab)

    assert told.sentence(task, "left") == "not created yet: depends on the decision of route"
    assert "left" in told.sentences(task)

    plan = lab.plan(Spec("route", DECISION), Spec("left", depends_on=("route",)))
    lab.one.advance(ok(claims["route"], gv=0, x=[new_step(plan, "left", "route")]))
    assert told.sentence(task, "right") == "not created: route did not name it"
    assert "right" not in told.sentences(task)


def test_a_step_that_has_ended_says_how_when_it_is_asked_for(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(2))
    told.lab.one.finish(claims["s0"])

    assert told.sentence(task, "s0") == "complete since 12:00:00"
    assert "s0" not in told.sentences(task)


def test_a_task_of_which_all_is_done_but_the_evaluation_says_so(told: Told) -> None:
    lab = told.lab
    task, _ = lab.running(lab.chain(1))
    lab.observer.execute("update tasker.workflow_steps set state = 'complete'")

    assert told.sentences(task) == {"": "every step has ended, and the task is to be evaluated"}
    lab.observer.execute("update tasker.workflow_steps set state = 'in_progress'")


def test_a_task_that_has_ended_has_nothing_to_explain(told: Told) -> None:
    task, claims = told.lab.running(told.lab.chain(1))
    told.lab.one.finish(claims["s0"])

    assert told.task(task).finished
    assert not told.task(task).reasons


def test_a_step_that_an_operator_resolved_is_no_reason(told: Told) -> None:
    lab = told.lab
    task, claims = lab.running(lab.chain(2))
    lab.one.advance(fail(claims["s0"]))
    lab.one.advance(operator("resolve", lab.steps(task)["s0"]))

    assert list(told.sentences(task)) == ["s1"]


def test_every_reason_is_read_in_a_test_of_this_folder() -> None:
    """A new row of the table needs a situation here."""
    text = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    first_words = {name: reason.sentence.split("{")[0].split("[")[0] for name, reason in REASONS.items()}

    assert not [name for name, words in first_words.items() if words.strip() and words.strip() not in text]
