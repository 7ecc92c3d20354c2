"""Many tasks like one that really ran: copies with every row that it has, in whatever table.

The tables and their columns come from the catalogue, so that a new table is copied, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from tests.support.engine_fixture import Session

KEYS = ("task_uuid", "workflow_step_uuid")
COLUMNS = """select c.relname as relation, array_agg(a.attname::text order by a.attnum) as names,
    array_agg(a.atttypid::regtype::text order by a.attnum) as types, array_agg(exists (
      select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indnkeyatts = 1 and i.indkey[0] = a.attnum
    ) order by a.attnum) as alone
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.relnamespace = 'tasker'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
    and a.attgenerated = '' and a.attidentity = ''
  group by c.relname having array_agg(a.attname) && %s::name[] order by c.relname"""
"""Of each table that has rows of tasks the columns that can be written, and whether a value must be unique."""
COPIES = """insert into copies select overlay(tasker.uuid_v7()::text placing '000000' from 31)::uuid, n
  from generate_series(1, %s) n"""
UNPLACED = """insert into tasker.unplaced_events (event_id) select e.event_id
  from tasker.domain_events e join copies c on c.task = e.task_uuid where e.withheld is null"""
"""A table of events that does not name their tasks."""
OF_TASK = "between %s::uuid and overlay(%s::text placing 'ffffff' from 31)::uuid"
"""A task and its steps, whose identifiers begin as the task's."""


def copy_task(
    session: Session | psycopg.Connection[Any], task: str, count: int, changed: Mapping[str, str] | None = None
) -> None:
    """Insert `count` copies of the task.

    `changed` has other values for some columns: "tasks.state" -> SQL over the row `x` and the number `c.n` of the copy.
    Raises `AssertionError` where a table has rows of the task and not so many for each copy.
    """
    connection = session.connection if isinstance(session, Session) else session
    cursor: Any
    with connection.transaction(), connection.cursor(row_factory=namedtuple_row) as cursor:
        cursor.execute("create temporary table copies (task uuid primary key, n int) on commit drop")
        cursor.execute(COPIES.encode(), (count,))
        for table in cursor.execute(COLUMNS.encode(), (list(KEYS),)).fetchall():
            key = next(name for name in KEYS if name in table.names)
            counted = f"select count(*) from tasker.{table.relation} where {key} {OF_TASK}"
            (rows,) = cursor.execute(counted.encode(), (task, task)).fetchone() or (0,)
            cursor.execute(_insert(table, key, changed or {}).encode(), (task, task))
            assert cursor.rowcount == rows * count, f"{table.relation}: {cursor.rowcount} of {rows * count} rows copied"
        cursor.execute(UNPLACED.encode())


def _insert(table: Any, key: str, changed: Mapping[str, str]) -> str:
    values = [
        changed.get(f"{table.relation}.{name}") or _value(name, type_, key, alone=alone)
        for name, type_, alone in zip(table.names, table.types, table.alone, strict=True)
    ]
    return f"""insert into tasker.{table.relation} ({", ".join(table.names)}) select {", ".join(values)}
      from tasker.{table.relation} x cross join copies c where x.{key} {OF_TASK} order by c.task"""


def _value(name: str, type_: str, key: str, *, alone: bool) -> str:
    if type_ == "uuid":
        of_task = f"left(x.{name}::text, 30) = left(x.{key}::text, 30)"
        other = "tasker.uuid_v7()" if alone else f"x.{name}"
        return f"case when {of_task} then (left(c.task::text, 30) || right(x.{name}::text, 6))::uuid else {other} end"
    if not alone:
        return f"x.{name}"
    return f"x.{name} || ' ' || c.n || ' ' || c.task" if type_ == "text" else "null"
