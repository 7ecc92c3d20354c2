"""The log of a process: every line that a handler writes has its task and step, and each complete step has a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import write_workflow

pytestmark = pytest.mark.slow

TEMPLATE = """
name: speaking
namespace: logs
version: 1.0.0
steps:
  - {name: on_the_loop, handler: on_the_loop}
  - {name: in_a_thread, handler: in_a_thread}
  - {name: in_a_process, handler: in_a_process, execution: {mode: process}}
"""
HANDLERS = """
import asyncio, logging
from tasker.logging import log_info
from tasker.step_handler import step_handler

log = logging.getLogger("my_project")

@step_handler("on_the_loop")
async def on_the_loop():
    log.info("hello %s", "loop")
    await asyncio.to_thread(log.warning, "hello from a thread of the handler's own")
    return {}

@step_handler("in_a_thread")
def in_a_thread():
    log_info("hello thread", {"amount": 3})
    return {}

@step_handler("in_a_process")
def in_a_process():
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("hello process")
    return {}
"""


def run(folder: Path, database: str, *options: str, **environ: str) -> str:
    workflow = write_workflow(folder / "speaking", TEMPLATE, HANDLERS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TASKER_LOG")}
    done = subprocess.run(
        [sys.executable, "-m", "tasker", "run", str(workflow), "--json", "--database-url", database, *options],
        capture_output=True,
        text=True,
        env={**kept, **environ},
        check=True,
        timeout=120,
    )
    return done.stderr


def test_in_json_every_line_is_an_object_with_the_ids_of_the_step_that_wrote_it(
    database_url: str, tmp_path: Path
) -> None:
    text = run(tmp_path, database_url, "--log-format", "json", TASKER_LOG_LEVEL="INFO")
    lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    hello = [line for line in lines if line["message"].startswith("hello")]
    assert {(line["message"].split()[1], line["step_name"]) for line in hello} == {
        ("loop", "on_the_loop"),
        ("from", "on_the_loop"),
        ("thread", "in_a_thread"),
        ("process", "in_a_process"),
    }
    for line in hello:
        assert line["task_uuid"] == hello[0]["task_uuid"]
        assert line["step_uuid"] != line["task_uuid"]
        assert line["attempt"] == 1
    assert [line["fields"] for line in hello if "fields" in line] == [{"amount": 3}]
    assert [line["exception"].splitlines()[-1] for line in hello if "exception" in line] == [
        "ZeroDivisionError: division by zero"
    ]
    completed = [line for line in lines if line["message"] == f"Step completed: step_uuid={line.get('step_uuid')}"]
    assert len(completed) == 3, "one line for each step"
    assert all(line["duration_ms"] >= 0 for line in completed)
    assert {line["operation"] for line in completed} == {"step_completed"}


def test_a_configuration_sets_the_form_and_the_option_counts_above_it(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "complete.toml"
    file.write_text('[common.log]\nformat = "json"\n')
    environ = {"TASKER_CONFIG_PATH": str(file), "TASKER_LOG_LEVEL": "INFO"}

    configured = run(tmp_path, database_url, **environ)
    (found,) = [line for line in configured.splitlines() if "hello process" in line]
    assert json.loads(found)["step_name"] == "in_a_process", "in a child process, too"

    chosen = run(tmp_path, database_url, "--log-format", "text", **environ)
    assert " INFO my_project hello loop correlation_id=" in chosen


def test_in_text_the_ids_stand_behind_the_message(database_url: str, tmp_path: Path) -> None:
    text = run(tmp_path, database_url, TASKER_LOG_LEVEL="DEBUG")
    (line,) = [line for line in text.splitlines() if "hello loop" in line]
    assert " INFO my_project hello loop correlation_id=" in line
    assert " step_name=on_the_loop attempt=1" in line
    (line,) = [line for line in text.splitlines() if "hello process" in line]
    assert " step_name=in_a_process " in line
    begin = (
        "Task initialized: task_uuid=",
        "Step claimed: step_uuid=",
        "Step completed: step_uuid=",
        "Task finalized: ",
    )
    for phrase in begin:
        assert phrase in text
    twice = [line for line in text.splitlines() if max(map(line.count, (" task_uuid=", " step_uuid="))) > 1]
    assert twice == []


def test_loggers_have_levels_of_their_own_in_child_processes_too(database_url: str, tmp_path: Path) -> None:
    text = run(tmp_path, database_url, TASKER_LOG_LEVEL="error,my_project=info,tasker_orchestration=info")
    said = [line.split(" ", 4)[2:] for line in text.splitlines() if line[:2] == "20"]
    assert {(level, name) for level, name, _ in said} >= {
        ("INFO", "my_project"),
        ("WARNING", "my_project"),
        ("ERROR", "my_project"),
        ("INFO", "tasker.orchestration"),
        ("INFO", "tasker.submission"),
    }
    assert not [each for each in said if each[1] in ("tasker.handlers", "tasker.process")], "they have the default"
    assert "hello process" in text


def test_without_a_level_a_run_tells_nothing_and_with_a_format_alone_what_is_wrong(
    database_url: str, tmp_path: Path
) -> None:
    assert "Step completed" not in run(tmp_path, database_url)
    text = run(tmp_path, database_url, TASKER_LOG_FORMAT="json")
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert {line["level"] for line in found} == {"WARNING", "ERROR"}
