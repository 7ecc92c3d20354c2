"""What to look at next is found by an index, and is what the view says."""

from __future__ import annotations

from typing import Any

from tasker.db.sql_files import query
from tests.support.engine_fixture import Lab, Session

MANY, LIMIT = 5000, 5
ENTRIES = """insert into tasker.tasks_dlq (task_uuid, original_state, dlq_reason, dlq_timestamp, task_snapshot)
  select gen_random_uuid(), 'steps_in_process', (enum_range(null::tasker.dlq_reason))[1 + n %% 6],
    tasker.now() - (n %% 150) * interval '1 hour',
    jsonb_build_object('words', (select string_agg(md5(n::text || m), '') from generate_series(1, 40) m))
  from generate_series(1, %s) n"""
VIEW = """select dlq_entry_uuid::text from tasker.v_dlq_investigation_queue
  order by priority_score desc, dlq_timestamp, dlq_entry_uuid limit %s"""
READ = "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'tasks_dlq'"


def queue(session: Session, limit: int, namespaces: list[str] | None = None) -> list[str]:
    params: dict[str, Any] = {"limit": limit, "namespaces": namespaces}
    return [row[0] for row in session.connection.execute(query("dead_letters", "queue"), params).fetchall()]


def test_the_most_urgent_entries_are_found_without_reading_all_that_wait(lab: Lab) -> None:
    lab.one.execute("truncate tasker.tasks_dlq")
    lab.one.execute(ENTRIES, MANY)
    lab.one.execute("analyze tasker.tasks_dlq")
    with lab.one.connection.transaction():
        before = int(lab.one.value(READ) or 0)
        found = queue(lab.one, LIMIT)
        read = int(lab.one.value(READ)) - before
    assert found == [row[0] for row in lab.one.connection.execute(VIEW, (LIMIT,)).fetchall()]
    assert read < MANY / 2
    assert queue(lab.one, LIMIT, ["elsewhere"]) == []
