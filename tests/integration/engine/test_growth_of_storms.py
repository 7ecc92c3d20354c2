"""Many timers that are due in one moment, and many steps that wait: what a call costs grows neither with those that are
left, nor with those that went before, whatever old statistics say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.benchmarks.growth.crowds import timed
from tests.integration.engine.test_growth_of_waiting import LIMIT
from tests.support.engine_fixture import Lab, ok
from tests.support.random_plans import Spec

READ = "select pg_stat_get_xact_tuples_returned(%s::text::regclass)"
READ_OF_ALL = """select sum(pg_stat_get_xact_tuples_returned(oid)) from pg_class
  where relnamespace = 'tasker'::regnamespace and relkind in ('r', 'i')"""
SLICE = 100


def read(lab: Lab, index: str, call: Callable[[], Any]) -> int:
    """How many entries of an index the call reads."""
    with lab.one.connection.transaction():
        before = lab.one.value(READ, f"tasker.{index}")
        call()
        return int(lab.one.value(READ, f"tasker.{index}") - before)


def entries(lab: Lab, call: Callable[[], None]) -> int:
    """How many entries of all indexes the call reads."""
    with lab.one.connection.transaction():
        before = lab.one.value(READ_OF_ALL)
        call()
        return int(lab.one.value(READ_OF_ALL) - before)


def due(lab: Lab, index: str, slices: int) -> int:
    """How many entries of an index the last of so many slices reads."""

    def look() -> None:
        assert lab.one.call("due", lab.one.args(limit=SLICE))["promoted"] == SLICE

    for _ in range(slices - 1):
        look()
    return read(lab, index, look)


def test_a_slice_of_due_timers_looks_at_its_own_tasks_alone(lone_lab: Lab) -> None:
    timed(lone_lab, 5000, 1)

    assert due(lone_lab, "tasks_pkey", 3) <= 15 * SLICE, "all tasks would be 5000 more"


def test_a_write_that_was_planned_for_an_empty_backlog_reads_no_more_of_it_when_it_is_full(lone_lab: Lab) -> None:
    lab = lone_lab
    lab.window = 0
    lab.one.execute("alter table tasker.ready_backlog set (autovacuum_enabled = false)")  # nobody plans anew
    timed(lab, 2100, 1)

    assert due(lab, "ready_backlog_pkey", 20) <= 2 * SLICE, "the whole backlog would be 1900 more"


@pytest.mark.parametrize("what", ["timers", "plain", "same key", "other key"])
def test_what_was_planned_while_there_was_little_reads_no_more_when_there_is_much(lone_lab: Lab, what: str) -> None:
    """Nobody has made new statistics since, as in the first minute of a storm."""
    lab = lone_lab
    for table in lab.one.rows(
        "select oid::regclass::text from pg_class where relnamespace = 'tasker'::regnamespace and relkind = 'r'"
    ):
        lab.one.execute(f"alter table {table[0]} set (autovacuum_enabled = false)")
    limits = lab.plan(Spec("a", limits=(LIMIT,)), Spec("b", depends_on=("a",)), name="limited")
    busy = {"context": {"customer": "busy"}}
    lab.submit(limits, busy, busy, busy)
    lab.one.call("due", lab.one.args(limit=1000))
    holders = lab.one.claim(3)

    def same_key() -> None:
        lab.one.advance(ok(holders.pop()))
        holders.extend(claim for claim in lab.one.claim(3) if claim["name"] == "a")

    def other_key() -> None:
        lab.submit(limits, {"context": {"customer": "quiet"}})
        lab.one.call("due", lab.one.args())
        lab.one.finish(*lab.one.claim(1))
        lab.one.finish(*lab.one.claim(1))

    def plain() -> None:
        lab.submit(lab.chain(2, name="plain"))
        (claim,) = lab.one.claim(1)
        lab.one.finish(claim, slots=4)

    def timers() -> None:
        lab.submit(lab.chain(1, name="delayed"), {"delay_ms": 1})
        lab.one.set_time(1)
        assert lab.one.call("due", lab.one.args())["promoted"] == 1
        lab.one.set_time(0)

    calls = {"timers": timers, "plain": plain, "same key": same_key, "other key": other_key}
    lab.one.execute("vacuum analyze")
    calls[what]()
    few = entries(lab, calls[what])
    lab.submit(limits, *([busy] * 3000))
    while lab.one.call("due", lab.one.args(limit=1000)).get("promoted"):
        pass

    assert entries(lab, calls[what]) <= few + 300, "any whole index would be 3000 more"
