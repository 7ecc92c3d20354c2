"""A migrated database on which one test works after the other, over sessions that stay open.

Most of the work of a short test would be that of the server for a new database and new sessions: to copy and remove
files, to compile functions, to plan their queries for the first time. Between two tests the rows are deleted and the
sessions reset; a database is given up that a test has left large, or in another shape than it had (tables, functions,
settings). Nothing is analyzed there, so the planner knows of no test what it would not know of the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row

NAMESPACE = "lab"
"""Has its queue in each such database, with the functions that belong to it."""

SEEDED = "alembic_version, schema_scripts, staleness_settings"
"""Tables that a migration fills."""

PREPARED_AFTER = 5
"""Calls of a statement: the driver's own choice."""

AS_NEW = b"""reset session authorization; reset all; close all; unlisten *; select pg_advisory_unlock_all();
discard temp; discard sequences"""

CHECKED_BY_ONE_PLAN = "alter function tasker.violations_v1(jsonb) set plan_cache_mode to force_generic_plan"
"""Of a check of the invariants most is planning: it is planned once for each session where tables stay small."""

DELETING = """
do $do$ declare
  relation text;
begin
  for relation in select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'tasker' loop
    execute 'alter table ' || relation || ' set (autovacuum_enabled = false)';
  end loop;
  perform tasker_pgmq.ensure_queue('worker_{namespace}_queue');
  execute 'create function pg_temp.clean() returns void language plpgsql as $$ begin
    perform tasker_pgmq.drop_queue(queue_name) from pgmq.meta where queue_name <> ''worker_{namespace}_queue''; '
  || (select string_agg(format('delete from %I.%I;', schemaname, tablename), ' ') from pg_tables
      where schemaname in ('tasker', 'pgmq') and tablename <> 'meta'
        and tablename <> all (string_to_array('{seeded}', ', '))) || ' end $$';
end $do$;
{planned_once};
set session_replication_role = replica;  -- so the order of the tables does not matter
set lock_timeout = '30s';
"""

LARGE = """select from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('tasker', 'pgmq') and c.relkind = 'r' and pg_relation_size(c.oid) > 512 * 1024"""

SHAPE = """select
  (select sum(hashtext(concat_ws(' ', n.nspname, c.relname, c.relkind, c.relnatts, c.reloptions, c.relacl)))
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid >= 16384 and n.nspname !~ '^pg_(toast_)?temp_'),
  (select array_agg(nspname || coalesce(nspacl::text, '') order by nspname) from pg_namespace
    where nspname !~ '^pg_(toast_)?temp_'),
  (select sum(xmin::text::bigint) from pg_proc
    where oid >= 16384 and pronamespace <> pg_my_temp_schema()),
  (select sum(xmin::text::bigint) from pg_trigger),
  (select sum(xmin::text::bigint) from pg_constraint where oid >= 16384),
  (select sum(xmin::text::bigint) from pg_rewrite where oid >= 16384),
  (select sum(xmin::text::bigint) from pg_attrdef),
  (select sum(xmin::text::bigint) from pg_db_role_setting),
  (select count(*) from pg_extension), (select count(*) from pg_event_trigger), (select count(*) from pg_publication),
  (select sum(hashtext(x::text)) from tasker.schema_scripts x),
  (select sum(hashtext(x::text)) from tasker.staleness_settings x),
  (select sum(hashtext(x::text)) from tasker.alembic_version x)"""


class Sessions:
    """Sessions on a migrated database that are handed out and taken back."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._free: list[psycopg.Connection[Any]] = []
        self._made: set[psycopg.Connection[Any]] = set()
        self._keeper = psycopg.connect(url, autocommit=True)
        self._keeper.execute(
            DELETING.format(namespace=NAMESPACE, seeded=SEEDED, planned_once=CHECKED_BY_ONE_PLAN).encode()
        )
        self._shape = self._keeper.execute(SHAPE).fetchall()

    def take(self) -> psycopg.Connection[Any]:
        """An open session as new, in autocommit mode."""
        while self._free:
            if not (session := self._free.pop()).closed:
                return session
        session = psycopg.connect(self.url, autocommit=True, row_factory=namedtuple_row)
        self._made.add(session)
        return session

    def take_back(self, session: psycopg.Connection[Any]) -> None:
        """Reset it, unless the test has broken it or opened it with options of its own, which would stay."""
        if session not in self._made:
            return session.close()
        try:
            if session.info.transaction_status != TransactionStatus.IDLE:
                session.rollback()
            session.autocommit, session.isolation_level, session.read_only, session.deferrable = True, None, None, None
            session.row_factory, session.prepare_threshold = namedtuple_row, PREPARED_AFTER
            session.execute(AS_NEW)
        except psycopg.Error:
            session.close()
        else:
            self._free.append(session)

    def clean(self) -> bool:
        """Delete what a test has left. False when the database is large or not of the shape that it had."""
        if self._keeper.execute(LARGE).fetchall():
            return False
        self._keeper.execute("select pg_temp.clean()")
        return self._keeper.execute(SHAPE).fetchall() == self._shape

    def close(self) -> None:
        for session in (*self._free, self._keeper):
            session.close()


class Laboratory:
    """Where a test finds a database without tasks: `make` opens another migrated one when that is needed."""

    def __init__(self, make: Callable[[], AbstractContextManager[str]]) -> None:
        self._make = make
        self._stack = ExitStack()
        self._sessions: Sessions | None = None

    @property
    def sessions(self) -> Sessions:
        if self._sessions is None:
            self._sessions = Sessions(self._stack.enter_context(self._make()))
            self._stack.callback(self._sessions.close)
        return self._sessions

    def clean(self) -> bool:
        """Make it ready for the next test. False when that one gets another database."""
        try:
            if self._sessions is None or self._sessions.clean():
                return True
        except psycopg.Error:  # the test has ended every session there, or dropped a table
            pass
        self.close()
        return False

    def close(self) -> None:
        self._stack.close()
        self._sessions = None
