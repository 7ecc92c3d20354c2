"""Rule 23: any number of tasks in one call, each judged on its own, all of it or nothing."""

from __future__ import annotations

import json
from uuid import uuid4

import psycopg

from tasker.clock import new_task_uuid
from tests.support.engine_fixture import Lab
from tests.support.random_plans import Spec


def test_duplicates_inside_and_outside_the_batch_create_nothing(lab: Lab) -> None:
    plan = lab.chain()
    identities = [str(uuid4()) for _ in range(4)]
    lab.submit(plan, {"identity": identities[0]})

    created = lab.submit(plan, *({"identity": identity} for identity in (*identities, identities[1], identities[2])))

    assert len(created) == 3
    rows = "select count(*) from tasker.{} x join tasker.tasks t using (task_uuid) where t.namespace_id = %s"
    counts = {
        table: lab.observer.value(rows.format(table), lab.namespace_id)
        for table in ("task_details", "workflow_steps", "workflow_step_edges", "task_transition_log")
    }
    assert counts == {"task_details": 4, "workflow_steps": 8, "workflow_step_edges": 4, "task_transition_log": 4}
    assert lab.queue_depth() == 4


def test_two_submissions_of_one_identity_at_the_same_time_create_one_task(lab: Lab) -> None:
    plan, entry = lab.chain(1), {"identity": str(uuid4())}
    lab.submit(plan)

    with lab.transaction(lab.one):
        first = lab.one.submit(plan, entry)["created"]
        second = lab.later(lab.two.submit, plan, entry)
        lab.waits(second, lab.two, on=lab.one)

    assert (len(first), second.result(timeout=30)["created"]) == (1, [])


def test_the_second_gets_the_task_when_the_first_rolls_back(lab: Lab) -> None:
    plan, entry = lab.chain(1), {"identity": str(uuid4())}
    lab.submit(plan)

    with lab.one.connection.transaction(force_rollback=True):
        lab.one.submit(plan, entry)
        second = lab.later(lab.two.submit, plan, entry)
        lab.waits(second, lab.two, on=lab.one)

    assert len(second.result(timeout=30)["created"]) == 1


def test_batches_of_the_same_identities_in_opposite_order_do_not_deadlock(lab: Lab) -> None:
    """They are inserted in the order of the identity, whatever the order of the batch."""
    plan = lab.chain(1)
    lab.submit(plan)
    for _ in range(10):
        identities = [{"identity": str(uuid4())} for _ in range(50)]
        calls = [lab.later(lab.one.submit, plan, *identities), lab.later(lab.two.submit, plan, *reversed(identities))]
        created = [len(call.result(timeout=60)["created"]) for call in calls]
        assert sorted(created) == [0, 50]


def test_a_caller_s_transaction_that_rolls_back_leaves_nothing(lab: Lab) -> None:
    plan = lab.chain()
    lab.submit(plan)
    lab.one.run_all()
    listener = lab.session().connection
    listener.execute("listen tasker_work")

    with lab.one.connection.transaction(force_rollback=True):
        (task,) = lab.one.submit(plan, {})["created"]
        assert lab.one.value("select count(*) from tasker.workflow_steps where task_uuid = %s", task) == 2

    for table in ("tasks", "task_details", "workflow_steps", "workflow_step_edges", "task_transition_log"):
        assert lab.observer.value(f"select count(*) from tasker.{table} where task_uuid = %s", task) == 0, table
    assert lab.queue_depth() == 0
    assert not list(listener.notifies(timeout=0))
    assert not lab.one.claim()


def test_the_caller_s_own_rows_and_the_task_are_committed_together(lab: Lab) -> None:
    lab.one.execute("create table orders_of_a_caller (id int)")
    plan = lab.chain(1)

    with lab.transaction(lab.one):
        lab.one.execute("insert into orders_of_a_caller values (1)")
        (task,) = lab.one.submit(plan, {})["created"]
        assert not lab.two.claim(), "invisible before the commit"

    (claim,) = lab.two.claim()
    assert claim["task"] == task
    lab.one.execute("drop table orders_of_a_caller")
    lab.two.finish(claim)


def test_a_caller_s_lock_timeout_ends_the_wait_for_a_rival(lab: Lab) -> None:
    plan, entry = lab.chain(1), {"identity": str(uuid4())}
    lab.submit(plan)

    with lab.transaction(lab.one):
        lab.one.submit(plan, entry)
        lab.two.execute("set lock_timeout = '1ms'")
        call = lab.later(lab.two.submit, plan, entry)
        assert isinstance(call.exception(timeout=30), psycopg.errors.LockNotAvailable)


def test_a_task_starts_with_its_static_steps_and_their_edges(lab: Lab) -> None:
    plan = lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b")))

    task = lab.submit_one(plan, context={"n": 1})

    steps = lab.steps(task)
    assert {name: (row.state, row.unmet) for name, row in steps.items()} == {
        "a": ("enqueued", 0),
        "b": ("enqueued", 0),
        "c": ("pending", 2),
    }
    assert (lab.task(task).total, lab.task(task).active, lab.task(task).priority) == (3, 2, 0)
    answer = lab.one.claim_answer()
    assert answer["tasks"][task]["context"] == {"n": 1}


def test_edges_between_static_steps_are_read_from_the_template_and_take_no_rows(lab: Lab) -> None:
    plan = lab.plan(Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a", "b")))
    task = lab.submit_one(plan)

    edges = lab.observer.rows(
        """select f.name as of, t.name as to, e.name from tasker.workflow_step_edges e
           join tasker.workflow_steps f on f.workflow_step_uuid = e.from_step_uuid
           join tasker.workflow_steps t on t.workflow_step_uuid = e.to_step_uuid
           where e.task_uuid = %s order by 1, 2""",
        task,
    )
    assert [tuple(edge) for edge in edges] == [(*pair, "dependency") for pair in ("ab", "ac", "bc")]
    assert lab.observer.value("select count(*) from tasker.dynamic_edges where task_uuid = %s", task) == 0


def test_a_task_keeps_the_template_it_was_submitted_with(lab: Lab) -> None:
    before = lab.chain(1, name="evolving")
    task = lab.submit_one(before)

    lab.one.submit(lab.chain(2, name="evolving"), {}, force=True)

    stored = lab.observer.value(
        "select t.hash from tasker.templates t where t.template_id = %s", lab.task(task).template_id
    )
    assert stored == before.hash
    assert list(lab.steps(task)) == ["s0"]


def test_other_content_under_the_same_version_is_refused_without_force(lab: Lab) -> None:
    lab.submit(lab.chain(1, name="fixed"))
    changed = lab.chain(2, name="fixed")

    answer = lab.one.core("register_template", {"hash": changed.hash, "plan": json.loads(changed.to_json())})

    assert answer["refused"] is True


def test_many_submitters_of_a_new_namespace_make_it_once(lab: Lab) -> None:
    sessions = [lab.session() for _ in range(6)]
    fresh = f"fresh{uuid4().hex[:8]}"

    futures = [lab.later(session.value, "select tasker.namespace_id(%s)", fresh) for session in sessions]

    assert len({future.result(timeout=30) for future in futures}) == 1


def test_bulk_submission_puts_the_urgent_first(lab: Lab) -> None:
    plan = lab.chain(1)
    tasks = [new_task_uuid() for _ in range(4)]

    lab.submit(plan, *({"id": task, "priority": priority} for task, priority in zip(tasks, (0, 5, 1, 9), strict=True)))

    order = [lab.one.take(1)[0]["task"] for _ in range(4)]
    assert order == [tasks[3], tasks[1], tasks[2], tasks[0]]
