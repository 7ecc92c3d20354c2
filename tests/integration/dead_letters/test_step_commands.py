"""The published commands about single steps: looking, the three repairs, the audit."""

from __future__ import annotations

import getpass
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
      - {name: check, handler: check}
      - {name: charge, dependencies: [check], handler: charge, retry: {max_attempts: 1}}
      - {name: ship, dependencies: [charge], handler: check}
"""
HANDLERS = """
    from tasker.step_handler import step_handler


    @step_handler("check")
    def check():
        return {"checked": True}


    @step_handler("charge")
    def charge():
        raise ValueError("declined")
"""


@pytest.fixture
def failed(module_database_url: str, tmp_path: Path) -> str:
    """A task whose second step has failed."""
    folder = write_workflow(tmp_path / "pay", TEMPLATE, HANDLERS)
    return str(json.loads(invoke("run", str(folder), "--json", database=module_database_url).stdout)["task_uuid"])


def task(*arguments: str, database: str) -> Any:
    result = invoke("task", *arguments, "--format", "json", database=database)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def text(*arguments: str, database: str) -> str:
    result = invoke("task", *arguments, database=database)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_steps_are_shown_with_what_they_wait_for(failed: str, module_database_url: str) -> None:
    found = {each["name"]: each for each in task("steps", failed, database=module_database_url)}
    said = text("steps", failed, database=module_database_url)

    assert [each["current_state"] for each in found.values()] == ["complete", "error", "pending"]
    assert found["ship"]["dependencies_satisfied"] is False
    assert said.startswith("✓ Found 3 workflow steps:\n  Step: check (")
    assert "    Attempts: 1/1" in said


def test_one_step_is_shown_by_name_and_by_identifier(failed: str, module_database_url: str) -> None:
    by_name = task("step", failed, "charge", database=module_database_url)
    by_uuid = task("step", failed, by_name["step_uuid"], database=module_database_url)

    assert by_name == by_uuid
    assert "  Retry eligible: false" in text("step", failed, "charge", database=module_database_url)
    assert invoke("task", "step", failed, "nothing", database=module_database_url).exit_code == 2


@pytest.mark.parametrize(
    ("command", "by", "title", "state"),
    [
        ("reset-step", "--reset-by", "Step reset successfully!", "enqueued"),
        ("resolve-step", "--resolved-by", "Step resolved manually!", "resolved_manually"),
        ("complete-step", "--completed-by", "Step completed manually with results!", "complete"),
    ],
)
def test_each_repair_says_the_new_state_and_keeps_who_and_why(
    failed: str, module_database_url: str, command: str, by: str, title: str, state: str
) -> None:
    more = ("--result", '{"paid": 1}', "--metadata", '{"by": "hand"}') if command == "complete-step" else ()
    arguments = (command, failed, "charge", by, "ann", "--reason", "card replaced", *more)
    said = text(*arguments, database=module_database_url)

    assert said.startswith(f"✓ {title}\n  New state: {state}\n  Reason: card replaced\n")
    notes = [each["metadata"] for each in task("history", failed, "--step", "charge", database=module_database_url)]
    assert {"actor": "ann", "reason": "card replaced"} in notes


def test_the_audit_says_who_stored_what(failed: str, module_database_url: str) -> None:
    whole = task("audit", failed, database=module_database_url)
    one = task("audit", failed, "check", database=module_database_url)

    assert [(each["step_name"], each["success"]) for each in whole] == [("charge", False), ("check", True)]
    assert [each["step_name"] for each in one] == ["check"]
    assert one[0]["worker_uuid"]
    assert "failure" in text("audit", failed, database=module_database_url)


SECRETIVE = """
    name: refund
    namespace: cards
    version: 1.0.0
    input_schema: {properties: {card: {type: string, x-sensitive: true}}}
    steps:
      - {name: look_up, handler: look_up, result_schema: {properties: {account: {x-sensitive: true}}}}
      - {name: pay, handler: pay, depends_on: [look_up], retry: {max_attempts: 1}}
    ---
    name: look
    namespace: cards
    version: 1.0.0
    steps:
      - {name: look_up, handler: look_up, result_schema: {properties: {account: {x-sensitive: true}}}}
"""
TELLING = """
    import logging

    from tasker.step_handler import depends_on, inputs, step_handler


    @step_handler("look_up")
    def look_up(context):
        return {"account": "account-7777"}


    @step_handler("pay")
    @depends_on(found="look_up")
    @inputs("card")
    def pay(card, found):
        raise ValueError(f"no {card} for {found}")
"""


def test_no_command_shows_what_a_schema_marks_unless_it_is_asked_to(tmp_path: Path, module_database_url: str) -> None:
    folder = str(write_workflow(tmp_path / "refund", SECRETIVE, TELLING))
    refund = ("run", folder, "--template", "refund", "--set", "card=card-4111")
    ran = invoke(*refund, database=module_database_url)
    told = invoke(*refund, "--json", "--show-sensitive", database=module_database_url)
    task = json.loads(told.stdout)["task_uuid"]
    done = invoke("run", folder, "--template", "look", "--json", database=module_database_url)
    looked = json.loads(done.stdout)["task_uuid"]
    hiding = [["task", name, task] for name in ("explain", "history", "logs")] + [["dlq", "show", task]]
    showing = [
        ["task", "show", task],
        ["task", "watch", looked],
        ["task", "step", looked, "look_up", "--format", "json"],
    ]
    showing += [["task", name, looked, "--format", "json"] for name in ("steps", "audit", "show")]
    printed = [invoke(*command, database=module_database_url) for command in (*hiding, *showing)]
    whole = [invoke(*command, "--show-sensitive", database=module_database_url) for command in showing]

    assert "no ***REDACTED*** for {'account': '***REDACTED***'}" in ran.output
    assert not [each.output for each in (ran, *printed) if "card-4111" in each.output or "account-7777" in each.output]
    assert "account-7777" in told.stdout
    assert "account-7777" not in done.output
    assert [command for command, each in zip(showing, whole, strict=True) if "account-7777" not in each.output] == []


def test_who_did_what_on_the_database_is_kept_with_how_it_ended(failed: str, module_database_url: str) -> None:
    database = module_database_url
    invoke("task", "step", "complete", failed, "charge", "--result", '{"pin": "pin-7777"}', database=database)
    invoke("task", "retry", "0199c1f4-0000-7000-8000-000000000000", database=database)
    invoke("pause", "--template", "payments/pay", "--reason", "look", database=database)
    invoke("resume", "--template", "payments/pay", database=database)
    invoke("task", "show", failed, database=database)

    shown = invoke("actions", "--limit", "4", "--format", "json", database=database)
    found = [(each["endpoint"], each["path"], each["status"]) for each in json.loads(shown.stdout)]

    assert found == [
        ("tasker resume", "--template payments/pay", 0),
        ("tasker pause", "--template payments/pay", 0),
        ("tasker task retry", "0199c1f4-0000-7000-8000-000000000000", 1),
        ("tasker task step complete", f"{failed} charge", 0),
    ]
    assert {(each["actor"], each["proof"]) for each in json.loads(shown.stdout)} == {(getpass.getuser(), "os_user")}
    assert "pin-7777" not in shown.output
