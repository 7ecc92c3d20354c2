"""Built-in steps run without a handlers.py, in every process that runs steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tasker
from tests.support.command_line import invoke, run_json

WORKFLOW = """
name: order
namespace: builtin
version: 1.0.0
steps:
  - {name: total, handler: tasker.transform, inputs: {sum: "${input.lines.sum()}", of: "${input}"}}
  - name: check
    handler: tasker.validate
    dependencies: [total]
    inputs: {value: "${steps.total.sum}", schema: {type: number, maximum: 10}, on_invalid: ON_INVALID}
  - name: note
    handler: tasker.log
    dependencies: [check]
    inputs: {message: "sum ${steps.total.sum}", level: warning, fields: {message: "${input.lines}"}}
  - {name: all, handler: tasker.collect, dependencies: [total, check, note]}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "order.yaml"
    path.write_text(WORKFLOW.replace("ON_INVALID", "report"), encoding="utf-8")
    return path


def run(url: str, text: str, tmp_path: Path, context: dict[str, Any]) -> Any:
    path = tmp_path / "order.yaml"
    path.write_text(text, encoding="utf-8")
    with tasker.SyncApp(url) as app:
        return app.run(path, context, timeout=60)


def test_a_file_without_handlers_runs(database_url: str, file: Path) -> None:
    done = run_json(file, "--input", '{"lines": [1, 2.5]}', database=database_url)
    assert done["status"] == "complete", done
    results = {step["name"]: step["result"] for step in done["steps"]}
    total = {"sum": 3.5, "of": {"lines": [1, 2.5]}}
    check = {"valid": True, "problems": []}
    assert results["total"] == total
    assert results["all"] == {"total": total, "check": check, "note": {}}
    logs = invoke("task", "logs", done["task_uuid"], database=database_url).stdout
    assert "sum 3.5" in logs


def test_a_value_that_does_not_fit_is_reported_or_fails_the_step(database_url: str, tmp_path: Path) -> None:
    context = {"lines": [8, 9]}
    reported = run(database_url, WORKFLOW.replace("ON_INVALID", "report"), tmp_path, context)
    assert reported.results["check"]["valid"] is False
    assert reported.results["check"]["problems"][0]["path"] == "$"
    failed = run(database_url, WORKFLOW.replace("ON_INVALID", "fail").replace("1.0.0", "1.1.0"), tmp_path, context)
    (failure,) = failed.steps["check"].failures
    assert (failure["error_type"], failure["retryable"]) == ("invalid_data", False)
    assert failure["metadata"]["problems"][0]["path"] == "$"


FAIL = """
name: refuse
namespace: builtin
version: 1.0.0
steps:
  - name: stop
    handler: tasker.fail
    retry: {max_attempts: 2, backoff_base_ms: 1}
    inputs: {message: "no ${input.what}", code: E-17, retryable: RETRYABLE}
"""


@pytest.mark.parametrize(("retryable", "attempts"), [("false", 1), ("true", 2)])
def test_fail_fails_with_its_message_and_code(database_url: str, tmp_path: Path, retryable: str, attempts: int) -> None:
    report = run(database_url, FAIL.replace("RETRYABLE", retryable), tmp_path, {"what": "way"})
    failures = report.steps["stop"].failures
    assert len(failures) == attempts
    assert (failures[-1]["message"], failures[-1]["error_code"]) == ("no way", "E-17")


def test_a_value_that_no_schema_describes_is_checked_by_the_step(database_url: str, tmp_path: Path) -> None:
    text = FAIL.replace("no ${input.what}", "${input.what}").replace("RETRYABLE", "true")
    (failure,) = run(database_url, text, tmp_path, {"what": [1]}).steps["stop"].failures
    assert failure["error_code"] == "invalid_inputs"
    assert "inputs.message" in failure["message"]


BATCHES = """
name: batches
namespace: builtin
version: 1.0.0
steps:
  - {name: cut, type: batchable, handler: cut}
  - {name: work, type: batch_worker, handler: tasker.transform, dependencies: [cut], inputs: {n: "${attempt}"}}
  - {name: all, type: deferred_convergence, handler: tasker.collect, dependencies: [work]}
"""
CUT = """
from tasker.step_handler import BatchConfig, batch_analyzer


@batch_analyzer("cut", worker_template="work")
def cut():
    return BatchConfig(total_items=30, batch_size=10)
"""


def test_collect_returns_the_results_of_all_batches(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(CUT, encoding="utf-8")
    report = run(database_url, BATCHES, tmp_path, {})
    assert report.results["all"] == {"work": [{"n": 1}] * 3}, report


FAKE = """
from tasker.step_handler import step_handler


@step_handler("tasker.fail")
def fake(context):
    return {}
"""


def test_a_handler_of_its_own_replaces_a_builtin_step(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(FAKE, encoding="utf-8")
    assert run(database_url, FAIL.replace("RETRYABLE", "true"), tmp_path, {"what": "way"}).succeeded


def test_a_misspelled_builtin_step_is_suggested(tmp_path: Path, database_url: str) -> None:
    path = tmp_path / "order.yaml"
    path.write_text(FAIL.replace("tasker.fail", "tasker.fial").replace("RETRYABLE", "true"), encoding="utf-8")
    result = invoke("run", path, "--input", json.dumps({"what": 1}), database=database_url)
    assert "did you mean `tasker.fail`" in result.output
