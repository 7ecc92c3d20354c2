"""Dead letters are counted when they are made and when somebody has dealt with them, and stay counted."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.db.sql_files import query
from tests.support.engine_fixture import Lab, Session, fail


def counted(lab: Lab) -> dict[str, tuple[int, float]]:
    """(number, hours) by what is counted."""
    rows = lab.observer.connection.execute(query("fleet", "dead_letters")).fetchall()
    return {what: (number, hours) for what, number, hours in rows}


def failed(lab: Lab, session: Session | None = None) -> str:
    """A task that fails for good, by a write of this session."""
    task, claims = lab.running(lab.chain())
    (session or lab.one).advance(fail(claims["s0"]))
    return task


def deal_with(lab: Lab, task: str, hours: float, status: str = "manually_resolved") -> None:
    """Somebody says so many hours after the entry what became of it."""
    entry = lab.observer.value("select dlq_entry_uuid from tasker.tasks_dlq where task_uuid = %s", task)
    moment = "(select dlq_timestamp from tasker.tasks_dlq where dlq_entry_uuid = %s) + %s * interval '1 hour'"
    lab.two.execute(f"select set_config('tasker.now', ({moment})::text, false)", entry, hours)
    values: dict[str, Any] = {"entry": entry, "status": status, "notes": None, "by": "ann", "metadata": None}
    lab.two.connection.execute(query("dead_letters", "update"), values)


def test_an_entry_is_counted_once_however_often_its_task_fails_while_it_waits(lab: Lab) -> None:
    task = failed(lab)
    again = "update tasker.tasks_dlq set updated_at = tasker.now() where task_uuid = %s"
    lab.one.execute(again, task)
    lab.one.execute("select tasker.dlq_failed(array[%s::uuid], '{error}', tasker.now())", task)
    failed(lab)
    assert counted(lab) == {"created": (2, 0)}


@pytest.mark.parametrize("status", ["manually_resolved", "permanently_failed", "cancelled"])
def test_what_was_dealt_with_is_counted_by_how_long_it_waited(lab: Lab, status: str) -> None:
    for hours in (0.5, 5, 6, 9000):
        deal_with(lab, failed(lab), hours, status)
    found = counted(lab)
    assert {what: number for what, (number, _) in found.items()} == {"created": 4, "1": 1, "8": 2, "+Inf": 1}
    assert found["8"][1] == pytest.approx(11)


def test_a_note_about_an_entry_that_waits_or_was_dealt_with_changes_no_number(lab: Lab) -> None:
    task = failed(lab)
    lab.one.execute("update tasker.tasks_dlq set resolution_notes = 'seen'")
    deal_with(lab, task, 2)
    lab.one.execute("update tasker.tasks_dlq set resolution_notes = 'seen again'")
    assert {what: number for what, (number, _) in counted(lab).items()} == {"created": 1, "4": 1}


def test_what_is_deleted_stays_counted(lab: Lab) -> None:
    deal_with(lab, failed(lab), 2)
    before = counted(lab)
    lab.one.execute("delete from tasker.tasks_dlq")
    assert counted(lab) == before


def test_a_transaction_that_stays_open_holds_up_no_other_that_counts(lab: Lab) -> None:
    claims = [lab.running(lab.chain())[1]["s0"] for _ in range(2)]
    with lab.one.connection.transaction():
        lab.one.advance(fail(claims[0]))
        lab.two.execute("set lock_timeout = '5s'")
        lab.two.advance(fail(claims[1]))
        assert counted(lab) == {"created": (1, 0)}
    assert counted(lab) == {"created": (2, 0)}


def test_statistics_count_each_way_in_which_entries_stand(lab: Lab) -> None:
    ways = {"manually_resolved": 1, "permanently_failed": 2, "cancelled": 3}
    for status, count in ways.items():
        for _ in range(count):
            deal_with(lab, failed(lab), 1, status)
    for _ in range(4):
        failed(lab)

    (row,) = lab.observer.connection.execute(query("dead_letters", "stats")).fetchall()
    assert (row.total_entries, row.pending) == (10, 4)
    assert (row.manually_resolved, row.permanent_failures, row.cancelled) == (1, 2, 3)
