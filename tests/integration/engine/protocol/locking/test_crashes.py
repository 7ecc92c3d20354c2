"""A process dies in the middle of a write, between any two of its lines: nothing of it stays, and it can be repeated.

Each write is stopped where it comes to one of its tables, which another connection has locked; there its connection is
ended, as that of a process that was killed.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.support.engine_fixture import Item, Lab, Session, ok, retry
from tests.support.random_plans import Spec

DIAMOND = (Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a",)), Spec("d", depends_on=("b", "c")))
HISTORY = ("step_moves", "task_moves")
PLACES = {
    "submit": ("task_details", "tasks", "workflow_steps", *HISTORY, "enqueue_counters", "queue"),
    "claim": ("queue", "workflow_steps", "step_moves", "enqueue_counters"),
    "finish": ("workflow_steps", "step_results", *HISTORY, "tasks", "enqueue_counters", "queue"),
    "fail": ("workflow_steps", "step_failures", *HISTORY, "tasks"),
    "park": ("workflow_steps", "step_results", "step_moves"),
    "cancel": ("tasks", "workflow_steps", *HISTORY),
    "grant": ("workflow_steps", "step_moves", "tasks", "limit_permits", "limit_waiters", "queue"),
}


def snapshot(lab: Lab) -> dict[str, str]:
    """Every row of every table, as one checksum for each table."""
    tables = lab.observer.rows(
        """select c.oid::regclass::text as name from pg_class c where c.relkind = 'r' and (
           c.relnamespace = 'tasker'::regnamespace or c.relname = 'q_worker_' || %s || '_queue') order by 1""",
        lab.namespace,
    )
    query = "select md5(coalesce(string_agg(t::text, ' ' order by t::text), '')) from {} t"
    return {table.name: lab.observer.value(query.format(table.name)) for table in tables}


def prepared(lab: Lab, write: str) -> tuple[Callable[[Session], object], Callable[[], bool]]:
    """A write that is about to be made, and whether it was made."""
    limit = {"name": "one", "max_running": 1}
    plan = lab.plan(*DIAMOND) if write != "grant" else lab.plan(Spec("a", limits=(limit,)))
    lab.submit(plan)
    if write == "grant":
        lab.submit(plan)
        lab.one.call("due", lab.one.args())
    if write == "submit":
        return lambda s: s.submit(plan, {"identity": f"{lab.namespace} 1"}), lambda: lab.queue_depth() == 2
    if write == "claim":
        return lambda s: s.claim(), lambda: lab.queue_depth() == 0
    (claim,) = lab.one.claim()
    return lambda s: _bring(lab, s, write, claim), lambda: lab.states(claim["task"])["a"] != "in_progress"


def _bring(lab: Lab, session: Session, write: str, claim: Item) -> object:
    if write == "cancel":
        return session.call("cancel", {"task": claim["task"]})
    if write == "park":
        return session.core("park", {"worker": lab.one.worker, "items": [ok(claim)]})
    return session.advance(retry(claim) if write == "fail" else ok(claim))


@pytest.mark.parametrize(("write", "place"), [(write, place) for write, places in PLACES.items() for place in places])
def test_a_write_whose_process_dies_leaves_nothing_and_can_be_repeated(lab: Lab, write: str, place: str) -> None:
    make, is_made = prepared(lab, write)
    table = f"pgmq.q_worker_{lab.namespace}_queue" if place == "queue" else f"tasker.{place}"
    before = snapshot(lab)
    doomed = lab.session()
    with lab.transaction(lab.two):
        lab.two.execute(f"lock table {table} in share mode")
        dying = lab.later(make, doomed)
        lab.waits(dying, doomed, lab.two)
        lab.observer.execute("select pg_terminate_backend(%s, 10000)", doomed.pid)
        with pytest.raises(psycopg.OperationalError):
            dying.result()
    assert snapshot(lab) == before

    make(lab.one)

    assert is_made()
    changed = {name for name, rows in snapshot(lab).items() if rows != before[name]}
    assert table in changed, "the write was stopped in the middle"
