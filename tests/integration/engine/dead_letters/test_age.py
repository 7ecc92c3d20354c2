"""When a task is not stale: while it waits for a known time, just after it was begun again, while a worker lives."""

from __future__ import annotations

from tests.integration.engine.dead_letters.test_staleness import at, declared, health, search
from tests.support.engine_fixture import FAILURE, Item, Lab, change, fail, operator, retry
from tests.support.random_plans import RetryPolicy, Spec

HOUR = 60
MANY = RetryPolicy(max_attempts=5)


def later(claim: Item, hours: int) -> Item:
    """What a worker makes of an error with `retry_after`."""
    delay_ms = hours * HOUR * 60_000
    return {**retry(claim, delay_ms=delay_ms), "e": {**FAILURE, "retry_in_ms": delay_ms}}


def test_task_is_not_stale_while_and_after_it_waits_for_a_known_time(lab: Lab) -> None:
    """A handler that raises with `retry_after` of 30 hours is how a step waits for a day and more."""
    task, claims = lab.running(lab.plan(Spec("a", retry=MANY)))
    lab.one.advance(later(claims["a"], 30))

    for hours in (20, 25, 30):
        assert (search(lab, hours * HOUR), health(lab, hours * HOUR, task)) == ([], "healthy")
    at(lab, 30 * HOUR + 1)
    (claim,) = lab.two.call("due", lab.two.args(slots=1))["claims"]
    assert search(lab, 30 * HOUR + 10) == [], "it has just begun to run"
    lab.two.advance(later(claim, 20))
    assert search(lab, 50 * HOUR) == [], "it waits again"

    (found,) = search(lab, (50 + 24) * HOUR + 10)
    assert (found["signal"], found["current_state"]) == ("time_in_state", "waiting_for_retry")


def test_age_counts_from_the_last_known_time(lab: Lab) -> None:
    plan = declared(lab, Spec("a", retry=MANY), max_steps_in_process_minutes=100 * HOUR)
    _, claims = lab.running(plan)
    lab.one.advance(later(claims["a"], 30))
    at(lab, 30 * HOUR + 1)
    lab.two.call("due", lab.two.args(slots=1))

    assert search(lab, 53 * HOUR) == []
    (found,) = search(lab, 54 * HOUR + 10)
    assert (found["signal"], found["threshold_minutes"]) == ("task_age", 24 * HOUR)


def test_template_limit_of_a_task_counts_from_its_creation(lab: Lab) -> None:
    """An author who gives a limit means the whole of it."""
    plan = declared(lab, Spec("a", retry=MANY), max_duration_minutes=10 * HOUR)
    _, claims = lab.running(plan)
    lab.one.advance(later(claims["a"], 30))

    (found,) = search(lab, 11 * HOUR)
    assert (found["signal"], found["threshold_minutes"]) == ("task_age", 10 * HOUR)


def test_running_step_excuses_its_task_only_while_its_worker_lives(lab: Lab) -> None:
    lab.one.start_worker(lease_ms=40 * 60_000)
    task, _ = lab.running(lab.chain(1))
    lab.observer.execute("update tasker.workflow_steps set deadline_at = pg_catalog.now() + interval '1 hour'")

    assert search(lab, 35) == []
    (found,) = search(lab, 45)
    assert (found["task_uuid"], found["signal"]) == (task, "time_in_state")


def test_old_task_that_is_reset_is_not_too_old_at_once(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a")))
    lab.one.advance(fail(claims["a"]))
    at(lab, 60 * HOUR)
    lab.two.advance(operator("reset", lab.steps(task)["a"]))
    lab.two.claim()

    assert search(lab, 60 * HOUR + 10) == []
    assert lab.task(task).state == "steps_in_process"


def test_a_task_of_next_week_is_never_stale_before_and_has_its_whole_time_then(lab: Lab) -> None:
    limits = {"max_waiting_for_dependencies_minutes": 60, "max_steps_in_process_minutes": 100 * HOUR}
    plan = declared(lab, Spec("a"), **limits, max_duration_minutes=10 * HOUR)
    first, second = lab.submit(plan, {"delay_ms": 100 * HOUR * 60_000}, {"delay_ms": 50 * HOUR * 60_000})

    for hours in (2, 30, 49):
        assert (search(lab, hours * HOUR), health(lab, hours * HOUR, second)) == ([], "healthy")
    at(lab, 50 * HOUR + 1)
    lab.two.call("due", lab.two.args(slots=1))
    assert search(lab, 59 * HOUR) == [], "it begins its time when it starts"
    (found,) = search(lab, 61 * HOUR)
    assert (found["task_uuid"], found["signal"]) == (first, "task_age")
    assert lab.states(second) == {"a": "pending"}


def test_a_delay_of_days_between_two_steps_is_not_counted(lab: Lab) -> None:
    plan = declared(
        lab,
        Spec("a"),
        Spec("b", depends_on=("a",), delay=100 * HOUR * 60.0),
        max_waiting_for_dependencies_minutes=60,
        max_steps_in_process_minutes=100 * HOUR,
    )
    task, claims = lab.running(plan)
    lab.one.finish(claims["a"])

    for hours in (2, 30, 100):
        assert (search(lab, hours * HOUR), health(lab, hours * HOUR, task)) == ([], "healthy")
    at(lab, 100 * HOUR + 1)
    lab.two.call("due", lab.two.args(slots=1))
    assert search(lab, 123 * HOUR) == []
    (found,) = search(lab, 124 * HOUR + 10)
    assert found["signal"] == "task_age"


def test_a_branch_that_is_stuck_is_stale_while_another_one_is_delayed(lab: Lab) -> None:
    plan = declared(lab, Spec("stuck"), Spec("later", delay=100 * HOUR * 60.0), max_steps_in_process_minutes=60)
    lab.running(plan)

    (found,) = search(lab, 2 * HOUR)

    assert found["current_state"] == "steps_in_process"


def test_a_snooze_of_days_is_not_counted_nor_a_dead_letter(lab: Lab) -> None:
    plan = declared(lab, Spec("a"), max_steps_in_process_minutes=100 * HOUR)
    task, claims = lab.running(plan)
    lab.one.advance(change("snooze", claims["a"], d=72 * HOUR * 60_000, sn=10), snoozes=True)

    for hours in (20, 48, 72):
        assert (search(lab, hours * HOUR), health(lab, hours * HOUR, task)) == ([], "healthy")
    at(lab, 72 * HOUR + 1)
    lab.two.call("due", lab.two.args(slots=1))
    assert search(lab, 95 * HOUR) == [], "its age begins when it is called again"
    (found,) = search(lab, 96 * HOUR + 10)
    assert found["signal"] == "task_age"


def test_a_deadline_takes_the_place_of_the_fleets_limit_of_age(lab: Lab) -> None:
    plan = declared(lab, Spec("a"), max_steps_in_process_minutes=100 * HOUR)
    task, _ = lab.running(plan, deadline_ms=60 * HOUR * 60_000)
    other, _ = lab.running(plan)

    (found,) = search(lab, 30 * HOUR)

    assert found["task_uuid"] == other
    assert health(lab, 30 * HOUR, task) == "healthy"
