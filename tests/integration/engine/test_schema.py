"""The shape of the tables: what the hot ones hold, which indexes exist and why, and what the views promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker.engine.states.step import StepState
from tasker.engine.states.task import TaskState
from tests.support.engine_fixture import Lab

HOT = ("tasks", "workflow_steps")
HISTORY = (
    "task_moves",
    "step_moves",
    "step_failures",
    "refused_results",
)
FEW_ROWS = (
    "dlq_replay_items",
    "event_deliveries",
    "operator_actions",
    "parked_events",
    "pauses",
    "poison_messages",
    "refused_results",
    "step_checkpoints",
    "step_progress",
    "unserved_steps",
)
"""Of tasks, and few or gone with the work that is under way."""
SQL = Path(__file__).parents[3] / "tasker" / "db" / "sql"


def indexes(lab: Lab, table: str) -> dict[str, str]:
    rows = lab.observer.rows(
        "select indexname, indexdef from pg_indexes where schemaname = 'tasker' and tablename = %s", table
    )
    return {row.indexname: row.indexdef for row in rows}


@pytest.mark.parametrize("table", HOT)
def test_hot_tables_leave_room_on_the_page_and_are_vacuumed_early(lab: Lab, table: str) -> None:
    options = lab.observer.value("select reloptions from pg_class where oid = %s::regclass", f"tasker.{table}")

    settings = dict(option.split("=") for option in options)
    assert int(settings["fillfactor"]) <= 55
    assert float(settings["autovacuum_vacuum_scale_factor"]) <= 0.05


def test_tables_that_grow_with_tasks_are_vacuumed_and_analyzed_early(lab: Lab) -> None:
    """20 % of a large table, the server's default, comes too late for its visibility map and its statistics."""
    growing = lab.observer.rows(
        """select relname, coalesce(reloptions, '{}') as options from pg_class c
           where relnamespace = 'tasker'::regnamespace and relkind = 'r' and relname <> all (%s)
             and exists (select from pg_attribute a
               where a.attrelid = c.oid and a.attname in ('task_uuid', 'workflow_step_uuid'))""",
        list(FEW_ROWS),
    )
    late = {
        row.relname
        for row in growing
        if float(dict(option.split("=") for option in row.options).get("autovacuum_vacuum_scale_factor", 1)) > 0.02
    }
    assert {row.relname for row in growing} >= {"tasks", "step_moves", "step_results", "domain_events", "tasks_dlq"}
    assert late == set()
    (dead_letters,) = (row.options for row in growing if row.relname == "tasks_dlq")
    assert "autovacuum_analyze_threshold=10" in dead_letters, "30 of 300,000 tasks are read by their few entries"


@pytest.mark.parametrize("table", HOT)
def test_no_index_of_a_hot_table_holds_what_every_update_changes(lab: Lab, table: str) -> None:
    """One that named `state` would make every update write to all indexes."""
    changing = {
        "state",
        "updated_at",
        "sort_key",
        "claim_token",
        "worker_uuid",
        "unmet",
        "active",
        "done",
        "attempts",
        "deadline_at",
    }

    for name, definition in indexes(lab, table).items():
        words = set(definition.replace("(", " ").replace(")", " ").replace(",", " ").split())
        assert not words & changing, name


@pytest.mark.parametrize("table", HOT)
def test_hot_tables_hold_no_values_of_any_size(lab: Lab, table: str) -> None:
    query = """select column_name as name from information_schema.columns
      where table_schema = 'tasker' and table_name = %s and data_type in ('jsonb', 'json', 'bytea', 'ARRAY')"""
    assert lab.observer.rows(query, table) == []


@pytest.mark.parametrize("table", HISTORY)
def test_history_has_at_most_two_indexes_beside_its_key_and_no_foreign_keys(lab: Lab, table: str) -> None:
    query = "select count(*) from pg_constraint where conrelid = %s::regclass and contype = 'f'"

    assert lab.observer.value(query, f"tasker.{table}") == 0
    assert len(indexes(lab, table)) <= 3


@pytest.mark.parametrize("table", ["task_moves", "step_moves"])
def test_what_every_write_adds_to_has_one_index(lab: Lab, table: str) -> None:
    assert len(indexes(lab, table)) == 1


def test_the_audit_takes_no_room_beside_the_history(lab: Lab) -> None:
    assert lab.observer.value("select relkind from pg_class where relname = 'workflow_step_result_audit'") in (
        "v",
        b"v",
    )


def test_every_index_names_the_query_that_needs_it() -> None:
    lines = (SQL / "migrations" / "0001_initial.sql").read_text().splitlines()

    silent = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line.startswith(("create index", "create unique index")) and "--" not in line and not before.startswith("--")
    ]
    assert silent == []


@pytest.mark.parametrize(("table", "states"), [("tasks", TaskState), ("workflow_steps", StepState)])
def test_the_states_of_the_tables_are_those_of_the_state_machines(lab: Lab, table: str, states: Any) -> None:
    query = "select pg_get_constraintdef(oid) from pg_constraint where conrelid = %s::regclass and conname = %s"
    definition = lab.observer.value(query, f"tasker.{table}", f"{table}_state_check")

    assert {state for state in states if f"'{state}'" in definition} == set(states)
    assert definition.count("'::text") == len(states)


def test_an_unknown_state_cannot_be_written(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))

    with pytest.raises(psycopg.errors.CheckViolation):
        lab.one.execute("update tasker.tasks set state = 'asleep' where task_uuid = %s", task)


def test_a_step_cannot_be_its_own_parent(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    step = lab.steps(task)["s0"].workflow_step_uuid

    with pytest.raises(psycopg.errors.CheckViolation):
        lab.one.execute("insert into tasker.dynamic_edges values (%s, %s, %s)", task, step, step)


def test_a_task_has_no_two_steps_of_one_name(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(2))

    with pytest.raises(psycopg.errors.UniqueViolation):
        lab.one.execute("update tasker.workflow_steps set name = 's0' where task_uuid = %s", task)


def test_step_identifiers_are_their_task_s_with_a_number(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(3))

    ids = [str(row.workflow_step_uuid) for row in lab.steps(task).values()]

    assert [step[:30] for step in ids] == [task[:30]] * 3
    assert [int(step[30:], 16) for step in ids] == [1, 2, 3]


def test_identifiers_made_by_the_database_are_ordered_by_time(lab: Lab) -> None:
    made = [str(lab.one.value("select tasker.uuid_v7()")) for _ in range(5)]

    assert {value[14] for value in made} == {"7"}
    assert {value[19] for value in made} <= set("89ab")
    assert [value[:8] for value in made] == sorted(value[:8] for value in made)


def test_time_is_an_argument(lab: Lab) -> None:
    lab.one.set_time(seconds=86_400)
    ahead, plain = (
        lab.one.value("select tasker.now() - pg_catalog.now()"),
        lab.two.value("select tasker.now() = pg_catalog.now()"),
    )

    assert 86_000 < ahead.total_seconds() <= 86_400
    assert plain is True
