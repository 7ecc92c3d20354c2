"""Rule 21: what the hot functions read grows with the batch, never with the database.

The server itself counts the rows that a call reads, by index or in sequence, in whatever plan it chose. Three
databases: one in which nothing has happened, one filled a moment ago (no statistics), a large one (with statistics).
The fourth case is the worst: a session whose plans were made and kept when the tables were empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engine_fixture import Lab, Session, change, ok, operator, retry
from tests.support.fleets.work import undisturbed
from tests.support.random_plans import Spec

if TYPE_CHECKING:
    from tests.support.servers.databases import Server

pytestmark = pytest.mark.slow

LARGE = 25_000
"""Tasks of four steps in the large database."""
BATCH = 10
"""Steps that each explained call is about."""
ROWS_PER_STEP = 60
"""Rows of one table that a call may touch for each step of its batch: some visits to the step, its kin and its task."""
WATCHED = {
    "tasks",
    "task_details",
    "workflow_steps",
    "dynamic_edges",
    "template_edges",
    "step_results",
    "step_moves",
    "task_moves",
    "ready_backlog",
    "step_inputs",
    "step_checkpoints",
    "step_failures",
    "template_steps",
}


class Reads:
    """What one call reads, by the server's own counters: rows by table, and the tables that it read in sequence."""

    def __init__(self, session: Session, call: Callable[[], Any]) -> None:
        with session.connection.transaction():
            before = _counters(session)
            call()
            after = _counters(session)
        self.rows = {name: after[name][0] - before[name][0] for name in WATCHED}
        self.sequential = {name for name in WATCHED if after[name][1] > before[name][1]}


def _counters(session: Session) -> dict[str, tuple[int, int]]:
    """Rows read and sequential scans by table, since some moment before this transaction."""
    found = session.rows(
        """select relname, seq_tup_read + coalesce(idx_tup_fetch, 0) as rows, seq_scan as scans
           from pg_stat_xact_user_tables where schemaname = 'tasker'"""
    )
    return {row.relname: (row.rows, row.scans) for row in found}


@pytest.fixture(scope="module")
def large(server: Server, migrated_template: str) -> Iterator[tuple[str, Lab, Session]]:
    """100,000 steps, a fraction of them done; and a session that had made its plans before there were any."""
    with server.database(migrated_template) as url:
        lab = Lab(url)
        lab.one.core(
            "worker",
            {
                "action": "start",
                "worker": lab.one.worker,
                "lease_ms": 10_000_000,
                "host": "x",
                "pid": 1,
                "namespaces": [],
                "concurrency": 1,
            },
        )
        early = lab.session()
        early.worker = lab.one.worker
        _everything(lab, early)
        plan = four_steps(lab)
        for _ in range(5):
            lab.submit(plan, *({} for _ in range(LARGE // 5)))
        for _ in range(5):
            lab.one.finish(*lab.one.claim(400))
        lab.one.execute(
            """insert into tasker.step_results (task_uuid, ordinal, workflow_step_uuid, name, result, bytes, created_at)
               select task_uuid, ordinal, workflow_step_uuid, name, '1', 12, created_at from tasker.workflow_steps
               on conflict do nothing"""
        )
        yield url, lab, early
        lab.close()


def four_steps(lab: Lab) -> Any:
    return lab.plan(*(Spec(f"s{i}", depends_on=(f"s{i - 1}",) if i else ()) for i in range(4)), name="four")


def _everything(lab: Lab, session: Session) -> dict[str, Callable[[], Any]]:
    """Each hot call once, on work of its own; again for the plans of a later call."""
    calls = hot_calls(lab, session)
    for call in calls.values():
        call()
    return calls


def hot_calls(lab: Lab, session: Session) -> dict[str, Callable[[], Any]]:
    """The calls by name, each about `BATCH` steps; they use what the ones before them left."""
    plan = four_steps(lab)
    held: list[Any] = []

    def claim() -> None:
        held[:] = session.claim(BATCH)
        assert len(held) == BATCH

    def finish() -> None:
        held[:] = session.finish(*held, slots=BATCH)["claims"]
        assert len(held) == BATCH

    def again() -> None:
        session.advance(*(retry(step, delay_ms=0) for step in held))

    def promote() -> None:
        held[:] = session.call("due", session.args(slots=BATCH, limit=BATCH))["claims"]

    first: list[str] = []

    def submit() -> None:
        first[:] = [str(task) for task in session.submit(plan, *({} for _ in range(BATCH)))["created"]]

    return {
        "submit": submit,
        "claim": claim,
        "finish and hand over": finish,
        "retry": again,
        "promote": promote,
        "inputs": lambda: session.core("inputs", {"steps": [step["step"] for step in held]}),
        "graph": lambda: session.core("graph", {"tasks": [step["task"] for step in held]}),
        "checkpoint": lambda: session.core(
            "checkpoint", {"step": held[0]["step"], "token": held[0]["token"], "cursor": 1}
        ),
        "begin": lambda: session.core("begin", {"step": held[0]["step"], "token": held[0]["token"]}),
        "beat": lambda: session.core(
            "worker",
            {
                "action": "beat",
                "worker": session.worker,
                "lease_ms": 10_000_000,
                "held": [[s["step"], s["token"]] for s in held],
            },
        ),
        "release": lambda: session.advance(*(change("release", step) for step in held)),
        "claim again": claim,
        "park": lambda: session.core("park", {"worker": session.worker, "items": [ok(step) for step in held]}),
        "settle parked": lambda: session.advance(*(change("ok", step) for step in held)),
        "release held steps": lambda: session.call(
            "backlog", session.args(window=lab.window + 10 * BATCH, limit=BATCH)
        ),
        "sweep a slice": lambda: session.core("sweep", {"limit": BATCH}),
        "operator": lambda: session.advance(operator("resolve", _a_step(session, first[0]))),
        "cancel": lambda: session.call("cancel", {"task": first[1]}),
    }


def _a_step(session: Session, task: str) -> Any:
    return session.rows("select * from tasker.workflow_steps where task_uuid = %s order by workflow_step_uuid", task)[0]


def check(lab: Lab, session: Session) -> None:
    too_many = {}
    for name, call in hot_calls(lab, session).items():
        rows = Reads(session, call).rows
        if excess := {table: count for table, count in rows.items() if count > BATCH * ROWS_PER_STEP}:
            too_many[name] = excess
    assert not too_many


def test_on_an_empty_database_the_hot_functions_choose_indexes_already(lone_lab: Lab) -> None:
    """Their plans are kept for the session's life, so one that suits an empty table would be a trap."""
    session = lone_lab.session()
    sequential = {name: Reads(session, call).sequential for name, call in hot_calls(lone_lab, session).items()}

    for name in (
        "submit",
        "claim",
        "finish and hand over",
        "retry",
        "release",
        "claim again",
        "park",
        "settle parked",
        "cancel",
    ):
        assert not sequential[name], name


def test_on_a_database_that_was_filled_a_moment_ago(large: tuple[str, Lab, Session]) -> None:
    _, lab, _ = large

    check(lab, lab.session())


def test_in_a_session_whose_plans_are_from_when_it_was_empty(large: tuple[str, Lab, Session]) -> None:
    _, lab, early = large

    check(lab, early)


def test_on_a_large_database_with_statistics(large: tuple[str, Lab, Session]) -> None:
    _, lab, _ = large
    lab.one.execute("analyze")

    check(lab, lab.session())


def test_a_step_s_life_writes_to_no_index_and_a_task_s_life_only_at_its_end(lone_lab: Lab) -> None:
    """One task fits on a page with all the versions of its rows, so each update could stay there, and is counted."""
    lab = lone_lab
    task = lab.submit_one(four_steps(lab))
    lab.one.run_all()
    assert lab.task(task).state == "complete"

    assert _updates(lab) == {"tasks": (4, 3), "workflow_steps": (11, 11)}


def test_a_step_that_waits_for_a_retry_writes_to_no_index_of_steps(lone_lab: Lab) -> None:
    """Its timer is a row of its own."""
    lab = lone_lab
    _, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))
    lab.one.call("due", lab.one.args())
    lab.one.run_all()

    assert _updates(lab)["workflow_steps"] == (5, 5)


def test_tasks_that_move_together_find_room_on_their_pages(lone_lab: Lab) -> None:
    """A write moves steps of many tasks at once. Without room on the page each would write to every index."""
    lab, tasks = lone_lab, 100
    for table in ("tasks", "workflow_steps"):  # nobody else's snapshot keeps old versions
        lab.one.execute(f"alter table tasker.{table} set (autovacuum_enabled = false)")
    expected = {"tasks": (4 * tasks, 3 * tasks), "workflow_steps": (8 * tasks, 8 * tasks)}

    assert expected in (_updates_of(lab, partial(_run_together, lab, tasks)) for _ in undisturbed(lab.observer))


def _run_together(lab: Lab, tasks: int) -> None:
    lab.submit(lab.chain(4), *({} for _ in range(tasks)))
    held = lab.one.claim(tasks)
    while held:
        held = lab.one.finish(*held, slots=tasks).get("claims") or []


def _updates_of(lab: Lab, action: Callable[[], None]) -> dict[str, tuple[int, int]]:
    before = _updates(lab)
    action()
    return {table: (all_ - before[table][0], hot - before[table][1]) for table, (all_, hot) in _updates(lab).items()}


def _updates(lab: Lab) -> dict[str, tuple[int, int]]:
    """By hot table: all updates, and those that left every index as it was."""
    lab.one.execute("select pg_stat_force_next_flush()")
    rows = lab.observer.rows(
        """select relname, n_tup_upd as updates, n_tup_hot_upd as hot from pg_stat_user_tables
           where schemaname = 'tasker' and relname in ('tasks', 'workflow_steps')"""
    )
    return {row.relname: (row.updates, row.hot) for row in rows}
