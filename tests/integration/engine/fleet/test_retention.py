"""What has ended and is older than its rule allows is deleted with all that is its own; everything else stays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from tasker.db.connection import Connection
from tasker.db.sql_files import query
from tasker.services.database import Pruned, RetentionService
from tasker.settings.retention import RetentionRule
from tests.integration.engine.fleet.conftest import Watched
from tests.support.engine_fixture import FAILURE, Lab, fail, new_step, ok, retry
from tests.support.fleets.work import Work, work_of
from tests.support.random_plans import BATCHABLE, DEFERRED, WORKER, Spec

SHARED = {
    "alembic_version",
    "template_events",
    *("domain_events", "event_positions", "unplaced_events"),  # which have a retention of their own
    *("domain_events_pruned", "event_subscribers", "event_deliveries"),
    *("task_namespaces", "named_tasks", "named_steps"),
    *("templates", "template_steps", "template_edges"),
    *("template_limits", "limit_rules", "limit_notes", "limit_buckets", "submission_buckets"),
    *("schedules", "schedule_fires"),  # whose history has a limit of its own
    *("enqueue_counters", "dlq_counters", "compensation_counters"),
    *("locks", "memos"),  # which expire by themselves, and outlive the task of their holder
    *("staleness_settings", "repairs", "turns", "workers", "worker_callables", "pause_log"),
    *("operator_actions", "saved_views", "page_sessions"),
    "schema_scripts",
    "poison_messages",
}
"""Tables of which no row is one task's."""


def aged(lab: Lab, days: float, *tasks: str) -> None:
    """These tasks ended so long ago."""
    lab.one.execute(
        "update tasker.tasks set completed_at = now() - %s * interval '1 day' where task_uuid = any (%s::uuid[])",
        days,
        list(tasks),
    )


def ended(lab: Lab, days: float, count: int = 1, *, name: str = "chain", failed: bool = False) -> list[str]:
    tasks = lab.submit(lab.chain(1, name=name), *({} for _ in range(count)))
    finish = fail if failed else ok
    lab.one.advance(*(finish(claim) for claim in lab.one.claim(count)), dead_letters=False)
    aged(lab, days, *tasks)
    return tasks


def left(lab: Lab) -> set[str]:
    return {str(row.task_uuid) for row in lab.observer.rows("select task_uuid from tasker.tasks")}


def counts(lab: Lab) -> dict[str, int]:
    """Rows of every table that belong to tasks."""
    names = [
        row.relname
        for row in lab.observer.rows(
            "select relname from pg_class where relnamespace = 'tasker'::regnamespace and relkind = 'r' order by 1"
        )
    ]
    return {
        name: int(lab.observer.value(f"select count(*) from tasker.{name}")) for name in names if name not in SHARED
    }


def prune(lab: Lab, *rules: RetentionRule, dry_run: bool = False, slice_steps: int = 1000) -> Sequence[Pruned]:
    async def run() -> Sequence[Pruned]:
        connection = Connection(lab.url, name="test")
        try:
            retention = RetentionService(connection, slice_steps=slice_steps)
            return await (retention.prunable(rules) if dry_run else retention.prune(rules))
        finally:
            await connection.close()

    return asyncio.run(run())


def test_what_is_older_than_its_rule_goes_and_the_rest_stays(lab: Lab) -> None:
    old, young = ended(lab, 31, 3), ended(lab, 29, 2)
    failed = ended(lab, 31, failed=True)
    (open_task,) = lab.submit(lab.chain(1))

    (done,) = prune(lab, RetentionRule(completed_days=30, failed_days=90))

    assert (done.template, done.failed, done.tasks, done.steps, done.kept) == ("chain", False, 3, 3, 0)
    assert left(lab) == {*young, *failed, open_task}
    assert left(lab).isdisjoint(old)
    assert prune(lab, RetentionRule(completed_days=30, failed_days=90)) == []
    lab.one.run_all()
    assert lab.task(open_task).state == "complete"


def test_failed_tasks_have_limits_of_their_own(lab: Lab) -> None:
    complete, failed = ended(lab, 400), ended(lab, 31, failed=True)

    prune(lab, RetentionRule(failed_days=30))

    assert left(lab) == {*complete}
    assert left(lab).isdisjoint(failed)


def test_of_a_template_the_newest_stay_when_a_count_is_given_with_what_ended_together_with_the_last(lab: Lab) -> None:
    tasks = [*ended(lab, 5), *ended(lab, 4), *ended(lab, 3, 3), *ended(lab, 2)]
    others = ended(lab, 9, name="other")

    prune(lab, RetentionRule(completed_count=2))

    assert left(lab) == {*tasks[2:], *others}


def test_the_rule_of_a_template_counts_above_its_namespace_s_and_that_above_the_general_one(lab: Lab) -> None:
    chain, other = ended(lab, 20), ended(lab, 20, name="other")
    strict = RetentionRule(completed_days=1)

    prune(lab, strict, RetentionRule(completed_days=30, namespace=lab.namespace))
    assert left(lab) == {*chain, *other}

    prune(lab, strict, RetentionRule(namespace=lab.namespace), RetentionRule(10, template="chain"))
    assert left(lab) == {*other}


def test_a_task_that_ended_within_the_last_hour_stays_for_whoever_waits_for_it(lab: Lab) -> None:
    fresh, older = ended(lab, 0.04), ended(lab, 0.05)

    prune(lab, RetentionRule(completed_days=0, completed_count=1))

    assert left(lab) == {*fresh}
    assert left(lab).isdisjoint(older)


def test_a_dry_run_says_what_would_go_and_deletes_nothing(lab: Lab) -> None:
    ended(lab, 31, 3)
    before = counts(lab)

    (plan,) = prune(lab, RetentionRule(completed_days=30), dry_run=True)

    assert (plan.tasks, plan.steps) == (3, 3)
    assert counts(lab) == before


def everything(lab: Lab) -> str:
    """A failed task that has a row in as many tables as a task can."""
    plan = lab.plan(
        Spec("cut", BATCHABLE), Spec("work", WORKER, ("cut",)), Spec("sum", DEFERRED, ("work",)), name="everything"
    )
    task, claims = lab.running(plan)
    worker = {**new_step(plan, "work", "cut"), "name": "work_1", "inputs": {"n": 1}, "batch": True}
    lab.one.advance(ok(claims["cut"], gv=0, x=[worker, new_step(plan, "sum", "work_1")]))
    (claim,) = lab.one.claim()
    told = {"task": task, "step": claim["step"], "token": claim["token"], "attempt": claim["attempt"]}
    line = {**told, "number": 1, "ago_ms": 0, "level": 20, "logger": "x", "message": "x", "fields": None}
    lab.one.core("report", {"lines": [line], "progress": [{**told, "fraction": 0.5}]})
    lab.one.core("checkpoint", {"step": claim["step"], "token": claim["token"], "checkpoint": {"at": 1}})
    lab.one.advance(retry(claim, delay_ms=0))
    lab.one.call("due", lab.one.args(limit=10))
    (again,) = lab.one.claim()
    lab.one.advance(ok(claim))  # refused, and kept as evidence
    lab.one.advance(fail(again, e=FAILURE))
    return task


def test_nothing_of_a_task_is_left_in_any_table(lab: Lab) -> None:
    before = counts(lab)
    task = everything(lab)
    step, other = lab.steps(task)["work_1"].workflow_step_uuid, str(uuid4())
    lab.one.execute("insert into tasker.parked_events values (%s, %s, 1, '[]')", step, task)
    lab.one.execute("insert into tasker.unserved_steps values (%s, 1, 'x', now())", step)
    lab.one.execute("insert into tasker.timers values (%s, 'r', now(), %s, 1)", step, task)
    columns = "workflow_step_uuid, task_uuid, namespace_id, rank"
    lab.one.execute(f"insert into tasker.ready_backlog ({columns}) values (%s, %s, 1, 1)", step, task)
    lab.one.execute("insert into tasker.limit_waiters values (%s, %s, 1, 'x', 1, false)", step, task)
    lab.one.execute("insert into tasker.limit_permits values (%s, 1, 'x', now())", step)
    lab.one.execute(
        "insert into tasker.pauses (namespace_id, task_uuid, actor, reason, paused_at) values (1, %s, 'a', '', now())",
        task,
    )
    columns = "workflow_step_uuid, token, nth, task_uuid, kind, since"
    lab.one.execute(f"insert into tasker.step_waits ({columns}) values (%s, 1, 1, %s, 'e', now())", step, task)
    lab.one.execute("insert into tasker.wait_events values (%s, 1, %s, 1, %s, now())", step, step, task)
    columns = "workflow_step_uuid, token, subject, task_uuid, decision, form, comment, via, voted_at"
    votes = (
        f"insert into tasker.approval_votes ({columns}) values (%s, 1, 'ada', %s, 'approved', '{{}}', '', 'api', now())"
    )
    lab.one.execute(votes, step, task)
    lab.one.execute("insert into tasker.debounces values (1, 'flow', 'x', %s, now(), 1, '{}', false)", task)
    lab.one.execute("insert into tasker.unique_keys values (1, 'flow', 'x', %s)", task)
    fan_out = (
        "workflow_step_uuid, token, task_uuid, template_id, depth, is_list, collects, total, max_parallel, tolerated"
    )
    values = "values (%s, 1, %s, 1, 1, true, true, 0, 1, 0, now(), 'c')"
    lab.one.execute(f"insert into tasker.fan_outs ({fan_out}, opened_at, state) {values}", step, task)
    lab.one.execute("insert into tasker.fan_out_items (workflow_step_uuid, token, index) values (%s, 1, 0)", step)
    lab.one.execute(
        "insert into tasker.child_ends (parent_step, token, index, child_uuid, ok) values (%s, 1, 0, %s, true)",
        step,
        step,
    )
    lab.one.execute("insert into tasker.task_families values (%s, 1)", task)
    lab.one.execute("insert into tasker.task_links values (%s, %s, %s, 1, null, 1)", task, other, other)
    lab.two.core("replay_plan", {"rate": 10, "actor": "ann", "why": "", "limit": 10})
    lab.one.execute("update tasker.dlq_replays set state = 'cancelled', finished_at = now()")
    lab.one.execute("update tasker.tasks_dlq set resolution_status = 'permanently_failed' where task_uuid = %s", task)
    aged(lab, 31, task)
    written = counts(lab)
    same = {name for name, rows in written.items() if rows == before[name]}
    assert same == {"flow_turns", "flow_weights", "incoming_events"}, "a table that the test does not fill"

    prune(lab, RetentionRule(failed_days=30))

    assert counts(lab) == before


def test_a_task_that_somebody_is_still_to_look_at_stays_with_its_entry(lab: Lab) -> None:
    task = everything(lab)
    aged(lab, 400, task)
    (entry,) = lab.observer.rows("select * from tasker.tasks_dlq where task_uuid = %s", task)
    before = counts(lab)

    (seen,) = prune(lab, RetentionRule(failed_days=30))

    assert (seen.tasks, seen.kept) == (0, 1)
    assert prune(lab, RetentionRule(failed_days=30), dry_run=True) == []
    assert counts(lab) == before

    params = {
        "entry": entry.dlq_entry_uuid,
        "status": "manually_resolved",
        "notes": None,
        "by": "ann",
        "metadata": None,
    }
    lab.one.connection.execute(query("dead_letters", "update"), params)
    prune(lab, RetentionRule(failed_days=30))
    assert left(lab) == set()


def test_a_task_that_a_replay_is_still_to_deal_with_stays(lab: Lab) -> None:
    task = everything(lab)
    lab.two.core("replay_plan", {"rate": 10, "actor": "ann", "why": "", "limit": 10})
    lab.one.execute("update tasker.tasks_dlq set resolution_status = 'permanently_failed' where task_uuid = %s", task)
    aged(lab, 400, task)

    prune(lab, RetentionRule(failed_days=30))

    assert left(lab) == {task}


def test_slices_are_transactions_of_their_own_and_what_was_cut_off_is_repeated(lab: Lab) -> None:
    tasks = ended(lab, 31, 5)
    named = lab.task(tasks[0]).named_task_uuid
    args = {"named_task_uuid": str(named), "failed": False, "before": "2999-01-01", "steps": 2}

    first = lab.one.core("prune", args)

    assert (first["tasks"], len(left(lab))) == (2, 3)
    (rest,) = prune(lab, RetentionRule(completed_days=30), slice_steps=2)
    assert (rest.tasks, left(lab)) == (3, set())


def test_a_task_larger_than_a_slice_goes_as_a_whole(lab: Lab) -> None:
    wide = lab.submit_one(lab.plan(*(Spec(f"s{i}") for i in range(50)), name="wide"))
    lab.one.run_all()
    aged(lab, 31, wide)

    (done,) = prune(lab, RetentionRule(completed_days=30), slice_steps=10)

    assert (done.tasks, done.steps) == (1, 50)
    assert counts(lab)["step_moves"] == 0


def test_tasks_that_others_hold_are_passed_over_and_go_the_next_time(lab: Lab) -> None:
    held, free = ended(lab, 32)[0], ended(lab, 31)[0]

    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for no key update", held)
        (done,) = prune(lab, RetentionRule(completed_days=30), slice_steps=1)

    assert (done.tasks, done.kept, left(lab)) == (1, 1, {held})
    assert free not in left(lab)
    prune(lab, RetentionRule(completed_days=30))
    assert left(lab) == set()


def test_an_entry_opened_meanwhile_keeps_its_task(lab: Lab) -> None:
    (task,) = ended(lab, 31)
    opening = {"task": task, "reason": "manual_dlq", "notes": None, "metadata": None, "actor": "ann"}

    with lab.transaction(lab.two):
        lab.two.connection.execute(query("dead_letters", "open"), opening)
        (seen,) = prune(lab, RetentionRule(completed_days=30))

    assert (seen.kept, left(lab)) == (1, {task})


def test_an_entry_and_a_result_that_come_too_late_leave_nothing_of_a_deleted_task(lab: Lab) -> None:
    late, claims = lab.running(lab.chain(1))
    lab.one.finish(claims["s0"])
    aged(lab, 31, late)
    opening = {"task": late, "reason": "manual_dlq", "notes": None, "metadata": None, "actor": "ann"}
    rules = [{"namespace": lab.namespace, "completed_days": 30}]
    (target,) = lab.one.core("prunable", {"rules": rules, "least_ms": 0})["targets"]

    with lab.transaction(lab.one):
        lab.one.core("prune", {**target, "steps": 100})
        entry = lab.later(lambda: lab.two.connection.execute(query("dead_letters", "open"), opening).fetchall())
        lab.waits(entry, lab.two, on=lab.one)
    assert entry.result() == []
    assert lab.two.finish(claims["s0"])["verdicts"] == {claims["s0"]["step"]: "stale"}
    assert set(counts(lab).values()) == {0}


def test_two_at_once_delete_each_task_once(lab: Lab) -> None:
    ended(lab, 31, 40)
    found: list[Sequence[Pruned]] = []

    threads = [
        threading.Thread(target=lambda: found.append(prune(lab, RetentionRule(completed_days=30), slice_steps=3)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(each.tasks for done in found for each in done) == 40
    assert left(lab) == set()


def test_an_identity_is_free_again_once_its_task_is_gone(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1), identity="order-7")
    lab.one.run_all()
    aged(lab, 31, task)

    prune(lab, RetentionRule(completed_days=30))

    assert len(lab.submit(lab.chain(1), {"identity": "order-7"})) == 1


def test_searching_costs_the_same_however_many_tasks_there_are(watched: Watched) -> None:
    lab = watched.lab

    def look() -> Work:
        lab.one.execute("vacuum tasker.tasks")
        args: dict[str, Any] = {"rules": [{"completed_days": 30, "failed_days": 90}], "least_ms": 1}
        return work_of(lab.one, lambda: lab.one.core("prunable", args))

    ended(lab, 1, 60)
    few = look()
    ended(lab, 1, 180)
    many = look()

    assert many.pages <= few.pages + 5, (few.pages_of, many.pages_of)
    assert many.rows <= few.rows + 5, many.heaviest


def test_a_slice_costs_the_same_however_many_tasks_stay(lab: Lab) -> None:
    def slice_of() -> Work:
        tasks = ended(lab, 31, 10)
        lab.one.execute("vacuum tasker.tasks")
        named = str(lab.task(tasks[0]).named_task_uuid)
        args = {"named_task_uuid": named, "failed": False, "before": "2020-01-01", "steps": 100}
        aged(lab, 9000, *tasks)
        return work_of(lab.one, lambda: lab.one.core("prune", args))

    ended(lab, 1, 60)
    few = slice_of()
    ended(lab, 1, 240)
    many = slice_of()

    assert many.rows <= few.rows * 1.5, many.heaviest
    assert many.pages <= few.pages * 1.5, (few.pages_of, many.pages_of)
