"""Many timers that are due in one moment: what a slice of them costs grows neither with those that are left, nor with
those that went before, whatever old statistics say.
"""

from __future__ import annotations

from tests.benchmarks.growth.crowds import timed
from tests.support.engine_fixture import Lab

READ = "select pg_stat_get_xact_tuples_returned(%s::text::regclass)"
SLICE = 100


def due(lab: Lab, table: str, slices: int = 1) -> int:
    """How many entries of an index the last of so many slices read."""
    for _ in range(slices - 1):
        assert lab.one.call("due", lab.one.args(limit=SLICE))["promoted"] == SLICE
    with lab.one.connection.transaction():
        before = lab.one.value(READ, f"tasker.{table}")
        assert lab.one.call("due", lab.one.args(limit=SLICE))["promoted"] == SLICE
        return int(lab.one.value(READ, f"tasker.{table}") - before)


def test_a_slice_of_due_timers_looks_at_its_own_tasks_alone(lone_lab: Lab) -> None:
    timed(lone_lab, 5000, 1)

    assert due(lone_lab, "tasks_pkey", 3) <= 15 * SLICE, "all tasks would be 5000 more"


def test_a_write_that_was_planned_for_an_empty_backlog_reads_no_more_of_it_when_it_is_full(lone_lab: Lab) -> None:
    lab = lone_lab
    lab.window = 0
    lab.one.execute("alter table tasker.ready_backlog set (autovacuum_enabled = false)")  # nobody plans anew
    timed(lab, 2100, 1)

    assert due(lab, "ready_backlog_pkey", 20) <= 2 * SLICE, "the whole backlog would be 1900 more"
