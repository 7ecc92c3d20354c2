"""`tasker dlq`: what a person sees and keeps; the commands move no task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import invoke, write_workflow

TEMPLATE = """
    name: pay
    namespace: payments
    version: 1.0.0
    identity_strategy: always_unique
    steps:
      - {name: charge, handler: charge, retry: {max_attempts: 1}}
"""
HANDLERS = """
    from tasker.step_handler import inputs, step_handler


    @step_handler("charge")
    @inputs("order")
    def charge(order=0):
        raise ValueError(f"order {order} is unknown")
"""


@pytest.fixture(scope="module")
def tasks(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two tasks that failed alike."""
    folder = write_workflow(tmp_path_factory.mktemp("dlq") / "pay", TEMPLATE, HANDLERS)
    return [_failed(folder, number, module_database_url) for number in (1, 22)]


def _failed(folder: Path, order: int, database: str) -> str:
    result = invoke("run", str(folder), "--json", "--input", json.dumps({"order": order}), database=database)
    assert result.exit_code == 1, result.output
    return str(json.loads(result.stdout)["task_uuid"])


def dlq(*arguments: str, database: str) -> Any:
    result = invoke("dlq", *arguments, "--format", "json", database=database)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_failed_tasks_are_listed_counted_and_queued(tasks: list[str], module_database_url: str) -> None:
    listed = dlq("list", "--status", "pending", "--namespace", "payments", database=module_database_url)
    queued = dlq("queue", database=module_database_url)
    (stats,) = dlq("stats", database=module_database_url)

    assert [each["task_uuid"] for each in listed] == [*reversed(tasks)]
    assert {each["task_uuid"] for each in queued} >= {*tasks}
    assert (stats["dlq_reason"], stats["pending"]) == ("max_retries_exceeded", 2)
    assert dlq("staleness", database=module_database_url) == []


def test_tasks_that_failed_alike_are_one_group(tasks: list[str], module_database_url: str) -> None:
    (group,) = dlq("groups", database=module_database_url)
    same = dlq("list", "--fingerprint", group["fingerprint"], database=module_database_url)

    assert (group["entries"], group["namespaces"], group["step"]) == (2, ["payments"], "charge")
    assert {each["task_uuid"] for each in same} == {*tasks}


def test_an_entry_is_shown_by_its_own_identifier_and_by_its_task(tasks: list[str], module_database_url: str) -> None:
    by_task = dlq("show", tasks[0][:18], database=module_database_url)
    by_entry = dlq("show", by_task["dlq_entry_uuid"], database=module_database_url)

    assert by_task == by_entry
    assert by_task["task_snapshot"]["workflow_steps"][0]["last_error"]["message"].endswith("order 1 is unknown")


def test_what_was_found_is_kept_closed_and_opened_again(tasks: list[str], module_database_url: str) -> None:
    database = module_database_url
    entry = dlq("show", tasks[1], database=database)["dlq_entry_uuid"]

    noted = dlq("update", entry, "--metadata", '{"ticket": 7}', database=database)
    assert (noted["resolution_status"], noted["resolved_at"], noted["resolved_by"]) == ("pending", None, None)
    closed = dlq("update", entry, "--status", "permanently_failed", "--notes", "no such order", database=database)
    assert (closed["resolution_status"], closed["metadata"]) == ("permanently_failed", {"ticket": 7})
    assert closed["resolved_at"]
    assert closed["resolved_by"]
    assert closed["current_state"] == "error"

    opened = dlq("open", tasks[1], "--notes", "found it after all", database=database)
    assert (opened["dlq_reason"], opened["resolution_notes"]) == ("manual_dlq", "found it after all")
    assert invoke("dlq", "open", tasks[1], database=database).exit_code == 1
    assert invoke("dlq", "update", entry, "--status", "pending", database=database).exit_code == 1
    assert dlq("show", tasks[1], database=database)["dlq_entry_uuid"] == opened["dlq_entry_uuid"]


def test_the_entry_of_a_task_is_changed_by_its_task_and_told_without_its_snapshot(
    tasks: list[str], module_database_url: str
) -> None:
    result = invoke("dlq", "update", tasks[0][:18], "--notes", "asked the shop", database=module_database_url)

    assert result.exit_code == 0
    assert "notes: asked the shop" in result.stdout
    assert "snapshot" not in result.stdout
    assert dlq("show", tasks[0], database=module_database_url)["resolution_notes"] == "asked the shop"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "00000000-0000-7000-8000-000000000000"), 1),
        (("show", "zzz"), 2),
        (("update", "zzz", "--notes", "x"), 2),
        (("update", "00000000-0000-7000-8000-000000000000"), 2),
        (("update", "00000000-0000-7000-8000-000000000000", "--notes", "x"), 1),
        (("list", "--status", "solved"), 2),
        (("update", "00000000-0000-7000-8000-000000000000", "--metadata", "[1]"), 2),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    tasks: list[str], module_database_url: str, arguments: tuple[str, ...], code: int
) -> None:
    result = invoke("dlq", *arguments, database=module_database_url)

    assert result.exit_code == code
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["list", "stats", "queue", "staleness", "groups"])
def test_each_list_is_readable_as_text(tasks: list[str], module_database_url: str, command: str) -> None:
    result = invoke("dlq", command, database=module_database_url)

    assert (result.exit_code, bool(result.stdout.strip())) == (0, True)


def test_a_group_is_replayed_as_it_was_said(tmp_path: Path, database_url: str) -> None:
    folder = write_workflow(tmp_path / "pay", TEMPLATE, HANDLERS)
    task = _failed(folder, 5, database_url)
    (group,) = dlq("groups", database=database_url)
    which = ("--fingerprint", group["fingerprint"])

    assert invoke("dlq", "replay", database=database_url).exit_code == 2
    for rate in ("0/s", "1000000/s", "1/fortnight"):
        assert invoke("dlq", "replay", *which, "--rate", rate, database=database_url).exit_code == 2
    planned = dlq("replay", *which, "--dry-run", database=database_url)
    assert (planned["tasks"], planned["steps"], planned["replay_uuid"]) == (1, 1, None)
    said = invoke("dlq", "replay", *which, "--rate", "600/m", "--note", "mended", database=database_url)

    assert said.exit_code == 0, said.output
    assert said.stdout.startswith("1 step of 1 task (payments/pay: 1)")
    assert "complete: 1 replayed, 0 skipped, of 1" in said.stdout
    assert dlq("show", task, database=database_url)["resolution_status"] == "manually_resolved"
    (row,) = dlq("replays", database=database_url)
    assert (row["state"], row["replayed"]) == ("complete", 1)
    assert invoke("dlq", "replays", "pause", row["replay_uuid"], database=database_url).exit_code == 1
