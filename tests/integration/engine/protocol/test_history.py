"""Rule 19: history only grows, shows every transition as a row, and says who stored which result."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tasker.services.tasks.history import HistoryPoller
from tasker.services.tasks.read import Tasks
from tests.integration.engine.protocol.conftest import Orchestra, result_of
from tests.support.engine_fixture import Lab, change, fail, ok, operator, retry
from tests.support.random_plans import Spec

TASK_COLUMNS = [
    "task_transition_uuid",
    "task_uuid",
    "to_state",
    "from_state",
    "processor_uuid",
    "metadata",
    "sort_key",
    "most_recent",
    "created_at",
    "updated_at",
]
STEP_COLUMNS = [
    "workflow_step_transition_uuid",
    "workflow_step_uuid",
    "to_state",
    "from_state",
    "metadata",
    "sort_key",
    "most_recent",
    "created_at",
    "updated_at",
]


def eventful(lab: Lab) -> str:
    """A task in which everything happens: retries, a failure, a reset, a release, a resolution, hand-overs."""
    plan = lab.plan(
        Spec("a"),
        Spec("b"),
        Spec("c"),
        Spec("d", depends_on=("a", "b")),
        Spec("e", depends_on=("d",)),
        Spec("f", depends_on=("c",)),
    )
    task, claims = lab.running(plan)
    lab.one.advance(ok(claims["a"]), retry(claims["b"], delay_ms=0), fail(claims["c"]))
    lab.one.call("due", lab.one.args(slots=5))
    lab.one.advance(operator("reset", lab.steps(task)["c"]))
    second = lab.running_claims(task)
    lab.one.advance(change("release", second["c"]))
    lab.one.finish(second["b"], slots=5)
    third = lab.running_claims(task)
    lab.one.advance(fail(third["c"]), ok(third["d"]))
    lab.one.advance(operator("resolve", lab.steps(task)["c"]))
    lab.one.run_all()
    assert lab.task(task).state == "complete"
    return task


@pytest.mark.parametrize(
    ("view", "columns"), [("task_transitions", TASK_COLUMNS), ("workflow_step_transitions", STEP_COLUMNS)]
)
def test_the_views_have_the_published_columns(lab: Lab, view: str, columns: list[str]) -> None:
    query = """select column_name as name from information_schema.columns
      where table_schema = 'tasker' and table_name = %s order by ordinal_position"""
    found = [row.name for row in lab.observer.rows(query, view)]

    assert [name for name in found if name in columns] == columns


@pytest.mark.parametrize(
    ("view", "subject", "subjects"),
    [("task_transitions", "task_uuid", 1), ("workflow_step_transitions", "workflow_step_uuid", 6)],
)
def test_every_subject_has_one_most_recent_row_and_sort_keys_without_gaps(
    lab: Lab, view: str, subject: str, subjects: int
) -> None:
    task = eventful(lab)
    rows = lab.observer.rows(
        f"""select {subject} as subject, count(*) filter (where most_recent) as recent,
              array_agg(sort_key order by sort_key) as keys,
              array_agg(from_state order by sort_key) as befores, array_agg(to_state order by sort_key) as afters
            from tasker.{view} where task_uuid = %s group by 1""",
        task,
    )

    assert len(rows) == subjects
    for row in rows:
        assert row.recent == 1
        assert row.keys == list(range(1, len(row.keys) + 1))
        assert (row.befores[0], row.afters[0]) == (None, "pending")
        assert row.befores[1:] == row.afters[:-1], "each transition begins where the one before ended"


def test_the_most_recent_row_shows_the_state(lab: Lab) -> None:
    task = eventful(lab)

    query = """select count(*) from tasker.workflow_steps s
      join tasker.workflow_step_transitions l using (workflow_step_uuid)
      where s.task_uuid = %s and l.most_recent and l.to_state = s.state"""
    assert lab.observer.value(query, task) == 6
    query = """select count(*) from tasker.tasks t join tasker.task_transitions l using (task_uuid)
      where t.task_uuid = %s and l.most_recent and l.to_state = t.state"""
    assert lab.observer.value(query, task) == 1


def test_transition_ids_are_unique_and_stay_the_same(lab: Lab) -> None:
    task = eventful(lab)
    query = """select workflow_step_transition_uuid as id from tasker.workflow_step_transitions
      where task_uuid = %s order by 1"""
    ids = [row.id for row in lab.observer.rows(query, task)]

    assert len(set(ids)) == len(ids)
    assert [row.id for row in lab.observer.rows(query, task)] == ids


def audit(lab: Lab, task: str) -> list[Any]:
    query = """select a.*, s.name from tasker.workflow_step_result_audit a
      join tasker.workflow_steps s using (workflow_step_uuid) where a.task_uuid = %s order by a.recorded_at, s.name"""
    return lab.observer.rows(query, task)


def test_every_result_that_a_worker_stored_has_one_audit_row_with_its_worker(lab: Lab) -> None:
    plan = lab.plan(Spec("good"), Spec("bad"), Spec("again"), Spec("theirs"))
    task = lab.submit_one(plan)
    mine = {claim["name"]: claim for claim in lab.one.claim(3)}
    (theirs,) = lab.two.claim()
    lab.two.advance(*([ok(mine["good"]), fail(mine["bad"]), retry(mine["again"])]))
    lab.one.advance(ok(theirs))

    rows = audit(lab, task)

    workers = {"good": lab.one.worker, "bad": lab.one.worker, "again": lab.one.worker, "theirs": lab.two.worker}
    assert {row.name: (str(row.worker_uuid), row.success, row.execution_time_ms) for row in rows} == {
        name: (worker, name in {"good", "theirs"}, 5) for name, worker in workers.items()
    }, "whoever claimed it is named, not whoever wrote it"
    correlation = lab.observer.value("select correlation_id from tasker.task_details where task_uuid = %s", task)
    assert {row.correlation_id for row in rows} == {correlation}


def test_a_parked_result_is_audited_when_the_worker_stores_it_and_not_again_when_it_is_settled(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))

    lab.one.core("park", {"worker": lab.one.worker, "items": [ok(claims["s0"])]})
    assert [(row.success, str(row.worker_uuid)) for row in audit(lab, task)] == [(True, lab.one.worker)]
    lab.two.advance(change("ok", claims["s0"]))

    assert len(audit(lab, task)) == 1
    assert lab.task(task).state == "complete"


def test_what_no_worker_stored_is_not_audited(lab: Lab) -> None:
    """Claims, releases, retries, resets, cancels and a person's decisions."""
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b"), Spec("c")))
    lab.one.advance(change("release", claims["a"]))
    lab.one.advance(operator("complete", lab.steps(task)["b"], r={"by": "hand"}))
    lab.two.call("cancel", {"task": task})
    lab.one.finish(*claims.values())

    assert audit(lab, task) == []


def test_an_audit_row_holds_no_result_and_points_to_its_transition(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(ok(claims["s0"], {"secret": "x"}))

    (row,) = audit(lab, task)

    assert "secret" not in str(row)
    to_state = lab.observer.value(
        "select to_state from tasker.workflow_step_transitions where workflow_step_transition_uuid = %s",
        row.workflow_step_transition_uuid,
    )
    assert to_state == "enqueued_for_orchestration"


def test_no_result_is_copied_into_the_history(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    lab.one.advance(ok(claims["s0"], {"secret": "x"}))

    tables = ["step_transition_log", "task_transition_log", "workflow_step_result_audit", "workflow_steps", "tasks"]
    found = [
        table
        for table in tables
        if "secret"
        in str(lab.observer.rows(f"select to_jsonb(x)::text from tasker.{table} x where task_uuid = %s", task))
    ]
    assert found == []


async def test_the_history_of_a_lost_worker_names_it(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, _ = lab.running(lab.chain(1))
    await orchestra.sweep()

    (row,) = lab.observer.rows(
        "select * from tasker.step_transition_log where task_uuid = %s and path like '%%waiting_for_retry'", task
    )

    assert (str(row.worker_uuid), row.metadata["reason"]) == (lab.one.worker, "worker_lost")


async def test_a_result_s_metadata_are_stored_beside_it(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    task, claims = lab.running(plan)
    await orchestra.process(result_of(plan, claims["s0"], {"n": 1}))

    row = lab.observer.rows("select result, name, ordinal from tasker.step_results where task_uuid = %s", task)[0]

    assert (row.result, row.name, row.ordinal) == ({"n": 1}, "s0", 0)


async def test_the_history_is_in_order_although_the_clock_went_back(orchestra: Orchestra) -> None:
    """Another server took over whose clock is behind: each subject's rows follow each other all the same."""
    lab = orchestra.lab
    task, claims = lab.running(lab.chain(2))
    lab.one.set_time(seconds=-3600)
    lab.one.finish(claims["s0"], slots=1)
    lab.one.finish(*lab.running_claims(task).values())

    rows = await Tasks(orchestra.engine).history(task)

    looks = HistoryPoller(orchestra.engine.connection)
    streamed = await looks.read(task)
    await looks.close()

    for told in (rows, streamed):
        for subject in (None, "s0", "s1"):
            states = [(row.from_state, row.to_state) for row in told if row.step == subject]
            assert states[0] == (None, "pending")
            assert all(before[1] == after[0] for before, after in pairwise(states)), states
    times = [row.at for row in rows if row.step is None]
    assert times != sorted(times), "the clock did go back"
