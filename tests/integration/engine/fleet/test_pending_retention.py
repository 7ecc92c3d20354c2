"""A task that waits for a person stays, unless a rule says for how long its dead letter may wait."""

from __future__ import annotations

from tasker.settings.retention import RetentionRule
from tests.integration.engine.fleet.test_retention import aged, left, prune
from tests.support.engine_fixture import Lab, fail


def waiting(lab: Lab, days: float) -> str:
    """A task that failed and whose dead letter is pending for so many days."""
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(fail(claims["s0"]))
    aged(lab, days, task)
    entered = "update tasker.tasks_dlq set dlq_timestamp = now() - %s * interval '1 day' where task_uuid = %s"
    lab.one.execute(entered, days, task)
    return task


def test_pending_dead_letters_go_with_their_tasks_after_the_days_of_the_rule(lab: Lab) -> None:
    old, young = waiting(lab, 100), waiting(lab, 80)
    rule = RetentionRule(failed_days=30, pending_days=90)

    (seen,) = prune(lab, rule, dry_run=True)
    assert seen.tasks == 1
    (done,) = prune(lab, rule)

    assert (done.tasks, done.kept) == (1, 1)
    assert left(lab) == {young}
    assert lab.observer.value("select array_agg(task_uuid::text) from tasker.tasks_dlq") == [young]
    assert old not in left(lab)


def test_days_of_pending_dead_letters_let_no_task_go_by_themselves(lab: Lab) -> None:
    task = waiting(lab, 100)

    assert prune(lab, RetentionRule(pending_days=1)) == []
    assert prune(lab, RetentionRule(failed_days=365, pending_days=1)) == []
    assert left(lab) == {task}
