"""In which order a call locks rows, without luck: somebody holds the row in the middle, and what the call has locked
when it waits for that row must be what comes before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.support.engine_fixture import Lab, Session

KEYS = {
    "tasker.tasks": "task_uuid",
    "tasker.workflow_steps": "workflow_step_uuid",
    "tasker.ready_backlog": "workflow_step_uuid",
}


def scatter(lab: Lab) -> None:
    """Write all rows anew, the last first, and tell the planner how few there are: it reads them in sequence."""
    for table, key in KEYS.items():
        rows = lab.observer.rows(f"select {key} as key from {table} order by {key} desc")
        for row in rows:
            lab.observer.execute(f"update {table} set {key} = {key} where {key} = %s", row.key)
        lab.observer.execute(f"vacuum analyze {table}")


def locks_in_order(lab: Lab, table: str, rows: Sequence[str], session: Session, call: Callable[[], Any]) -> Any:
    """What `call` answers, made by `session`; it must lock these rows of the table in ascending order of their key."""
    rows, key = sorted(rows), KEYS[table]
    scatter(lab)
    middle = len(rows) // 2
    blocker = lab.session()
    with lab.transaction(blocker):
        blocker.execute(f"select from {table} where {key} = %s for update", rows[middle])
        future = lab.later(call)
        lab.waits(future, session, on=blocker)
        free = lab.observer.rows(
            f"select {key}::text as key from {table} where {key} = any (%s::uuid[]) for update skip locked", list(rows)
        )
        assert sorted(row.key for row in free) == rows[middle + 1 :], "locked in another order"
    return future.result(timeout=60)
