"""What takes room in the database is told from the server's statistics."""

from __future__ import annotations

import json

from tests.support.command_line import invoke
from tests.support.engine_fixture import Lab


def test_the_report_tells_sizes_dead_rows_and_what_a_task_costs(lone_lab: Lab) -> None:
    lone_lab.submit(lone_lab.chain(2), *({} for _ in range(10)))
    lone_lab.one.run_all()
    lone_lab.one.execute("select pg_stat_force_next_flush()")  # told after the vacuum its rows would be counted twice
    lone_lab.one.execute("vacuum analyze")

    found = json.loads(invoke("db", "report", "--database-url", lone_lab.url, "--format", "json").output)

    tables = {each["table"]: each for each in found["tables"]}
    assert (found["tasks"], tables["tasker.tasks"]["rows"], tables["tasker.workflow_steps"]["rows"]) == (10, 10, 20)
    assert tables["tasker.tasks"]["dead"] == 0
    assert tables["tasker.tasks"]["vacuumed_at"]
    sizes = [each["table_bytes"] + each["index_bytes"] for each in found["tables"]]
    assert sizes == sorted(sizes, reverse=True)
    assert (found["bytes"], found["bytes_per_task"]) == (sum(sizes), round(sum(sizes) / 10))


def test_the_report_is_a_table_for_people(lone_lab: Lab) -> None:
    told = invoke("db", "report", "--database-url", lone_lab.url).output

    assert "tasker.workflow_steps" in told
    assert "for 0 tasks, 0 B each" in told


def test_statements_that_take_time_are_told_where_the_server_counts_them(lone_lab: Lab) -> None:
    preloaded = "pg_stat_statements" in lone_lab.observer.value("show shared_preload_libraries")
    if preloaded:
        lone_lab.one.execute('create schema "of its own"')
        lone_lab.one.execute('create extension pg_stat_statements schema "of its own"')
        lone_lab.one.execute("set pg_stat_statements.track = 'top'")
        lone_lab.submit(lone_lab.chain(1))

    told = invoke("db", "report", "--database-url", lone_lab.url).output
    costly = json.loads(invoke("db", "report", "--database-url", lone_lab.url, "--format", "json").output)["costly"]

    if preloaded:
        assert any("tasker_pgmq.call_v1" in each["statement"] and each["calls"] == 1 for each in costly["statements"])
        assert "call_v1" in told
    else:
        assert "create extension pg_stat_statements" in costly["missing"]
        assert costly["missing"] in told
