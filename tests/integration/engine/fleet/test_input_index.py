"""Tasks are found by fields of their input: among the newest, or where inputs are indexed among all of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tasker.db.sql_files import query
from tests.support.command_line import invoke
from tests.support.engine_fixture import Lab

INDEX = "task_details_inputs"


def given(**fields: Any) -> dict[str, Any]:
    return {"context": fields}


def found(lab: Lab, field: str) -> list[str]:
    told = invoke("task", "list", "--field", field, "--format", "json", "--database-url", lab.url)
    assert told.exit_code == 0, told.output
    return [each["task_uuid"] for each in json.loads(told.stdout)]


def index(lab: Lab, *options: str) -> str:
    told = invoke("db", "index-inputs", *options, "--database-url", lab.url)
    assert told.exit_code == 0, told.output
    return told.stdout.strip()


@pytest.fixture
def looked_into_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an index the input of no task is looked at."""
    monkeypatch.setattr("tasker.services.tasks.lists.LOOKED_INTO", 0)


@pytest.mark.usefixtures("looked_into_none")
def test_all_tasks_are_found_by_their_input_once_it_is_indexed(lone_lab: Lab) -> None:
    plan = lone_lab.chain(1)
    (first,) = lone_lab.submit(plan, given(order={"id": 7, "of": "ada"}))
    lone_lab.submit(plan, given(order={"id": 8}), given(id="7"))
    assert found(lone_lab, "order.id = 7") == []

    assert index(lone_lab) == "created the index of inputs"
    assert index(lone_lab) == "inputs are already indexed"

    assert found(lone_lab, "order.id = 7") == [first]
    assert found(lone_lab, "order.of = ada") == [first]
    assert found(lone_lab, "order.id = 9") == []
    (later,) = lone_lab.submit(plan, given(order={"id": 7}))
    assert found(lone_lab, "order.id = 7") == [later, first]

    assert index(lone_lab, "--drop") == "removed the index of inputs"
    assert index(lone_lab, "--drop") == "there is no index of inputs"
    assert found(lone_lab, "order.of = ada") == []


def test_the_index_is_used_among_many_tasks(lone_lab: Lab) -> None:
    lone_lab.submit(lone_lab.chain(1), *(given(order={"id": number}) for number in range(2_000)))
    index(lone_lab)
    lone_lab.one.execute("vacuum analyze")
    asked = f"{query('listing', 'tasks')} {query('listing', 'details')} where {query('listing', 'inputs')}"
    plan = lone_lab.one.connection.execute(
        f"explain select t.task_uuid {asked} order by t.task_uuid desc limit 50".encode(),
        {"context": '{"order": {"id": 77}}'},
    ).fetchall()

    assert any(INDEX in line for (line,) in plan), plan


@pytest.mark.usefixtures("looked_into_none")
def test_an_index_whose_creation_was_cut_off_is_made_anew(lone_lab: Lab) -> None:
    (first,) = lone_lab.submit(lone_lab.chain(1), given(n=1))
    index(lone_lab)
    lone_lab.one.execute(f"update pg_index set indisvalid = false where indexrelid = 'tasker.{INDEX}'::regclass")
    assert found(lone_lab, "n = 1") == []

    assert index(lone_lab) == "created the index of inputs"

    assert found(lone_lab, "n = 1") == [first]


def test_a_field_without_a_value_is_told_as_such(lone_lab: Lab) -> None:
    told = invoke("task", "list", "--field", "order.id", "--database-url", lone_lab.url)

    assert told.exit_code == 2
    assert "'order.id' does not name a field and its value" in told.output


def test_who_does_not_own_the_schema_is_told_so(lone_lab: Lab) -> None:
    role = "reads_only_inputs"
    lone_lab.one.execute(f"drop role if exists {role}")
    lone_lab.one.execute(f"create role {role} login")
    try:
        lone_lab.one.execute(f"grant usage on schema tasker to {role}")
        address = lone_lab.url + ("&" if "?" in lone_lab.url else "?") + f"user={role}"
        told = invoke("db", "index-inputs", "--database-url", address)
        assert told.exit_code != 0
        assert "the index of inputs cannot be changed" in told.output
        assert "connect as the owner of the schema" in told.output
    finally:
        lone_lab.one.execute(f"drop owned by {role}")
        lone_lab.one.execute(f"drop role {role}")
