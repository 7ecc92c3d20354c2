"""What a finished task leaves on the disk."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.conditions import Conditions
from tests.benchmarks.growth.case import lab_of
from tests.support.engine_fixture import Lab

TASKS = 2_000
"""So many that the pages which each table begins with do not count."""
BYTES = 4_800
"""Of tables and indexes, for a task of four steps with small results, without vacuum."""
SIZES = """select c.relname, pg_relation_size(c.oid) as rows, pg_indexes_size(c.oid) as indexes from pg_class c
  where c.relnamespace = 'tasker'::regnamespace and c.relkind = 'r'"""


def lines(conditions: Conditions) -> Iterator[str]:
    """Bytes by table, the largest first, and all of them beside the bound."""
    with conditions.database("tasker_growth") as url:
        lab = lab_of(url)
        plan = lab.chain(4)
        before = _sizes(lab)
        for _ in range(TASKS // 100):
            lab.submit(plan, *({"context": {"order": number}} for number in range(100)))
            held = lab.one.claim(100)
            while held:
                held = lab.one.finish(*held, slots=100).get("claims") or []
        grown = {name: (size - before[name]) // TASKS for name, size in _sizes(lab).items()}
        lab.close()
    whole = sum(grown.values())
    yield from (
        f"  {name:<34}{size:>8,}" for name, size in sorted(grown.items(), key=lambda item: -item[1]) if size > 9
    )
    verdict = "" if whole <= BYTES else "  BEYOND"
    yield f"{'bytes of a finished task':<36}{whole:>8,}    bound {BYTES:,}{verdict}"


def _sizes(lab: Lab) -> dict[str, int]:
    return {row.relname: row.rows + row.indexes for row in lab.one.rows(SIZES)}
