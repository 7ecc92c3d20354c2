"""The standard of log lines, held against every line that real processes write of healthy and of failing work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tasker.app import TaskRequester
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TEMPLATE = """
name: told
namespace: logs
version: 1.0.0
steps:
  - {name: speaks, handler: speaks, publishes_events: [{name: logs.spoken, delivery_mode: broadcast}]}
  - {name: in_a_process, handler: in_a_process, execution: {mode: process}}
  - {name: again, handler: again, retry: {max_attempts: 3, backoff: fixed, backoff_base_ms: 10}}
  - {name: worn, handler: worn, retry: {max_attempts: 2, backoff: fixed, backoff_base_ms: 10}}
  - {name: refused, handler: refused}
  - {name: pages, handler: pages}
"""
HANDLERS = """
import logging
from tasker.errors import PermanentError
from tasker.logging import log_warn
from tasker.step_handler import checkpoint_yield, step_handler

log = logging.getLogger("my_project")

@step_handler("speaks")
async def speaks(context):
    log.info("hello")
    context.log.info("kept", amount=3)
    return {"said": True}

@step_handler("in_a_process")
def in_a_process():
    log_warn("apart", {"amount": 3})
    return {}

@step_handler("again")
def again(context):
    if context.retry_count < 2:
        raise ConnectionError("not yet")
    return {}

@step_handler("worn")
def worn():
    raise ConnectionError("never")

@step_handler("refused")
def refused():
    raise PermanentError("no such card")

@step_handler("pages")
def pages(context):
    return {} if context.checkpoint else checkpoint_yield(1, 1)
"""
OF_EVERY_LINE = ("timestamp", "level", "logger", "message")
ORDER = [
    *("correlation_id", "task_uuid", "step_uuid", "namespace"),
    *("operation", "state", "status", "from_state", "to_state"),
    *("duration_ms", "count", "size"),
    *("error", "error_type", "context"),
]
OTHER_NAMES = {"elapsed_ms", "time_ms", "took_ms", "err", "error_message", "workflow_step_uuid", "attempts", "retries"}
OTHER_NAMES |= {"max_attempts", "task", "step"}
CORRELATION = "0199c1f4-8a52-7000-8000-00000000c0de"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SHOUTS, TICKETS = re.compile(r"[A-Z_]{3,}:"), re.compile(r"\b[A-Z]+-[0-9]+\b")
OF_STEPS = {
    "Step completed: step_uuid=": {"speaks", "in_a_process", "again", "pages"},
    "Step claimed: step_uuid=": {"speaks", "in_a_process", "again", "worn", "refused", "pages"},
    "Step execution failed, will retry": {"again", "worn"},
    "Step execution failed after max retries, will not retry further": {"worn"},
    "Step execution failed permanently": {"refused"},
    "Domain event published successfully": {"speaks"},
    "hello": {"speaks"},
    "apart": {"in_a_process"},
}


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    environment = {"TASKER_LOG_FORMAT": "json", "TASKER_LOG_LEVEL": "DEBUG"}
    running = Fleet(database_url, tmp_path, environment=environment)
    yield running
    running.stop()


def lines_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def told(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in OF_EVERY_LINE}


def assert_standard(line: Mapping[str, Any]) -> None:
    assert tuple(line)[:4] == OF_EVERY_LINE
    assert line["level"] in ("DEBUG", "INFO", "WARNING", "ERROR")
    assert not SHOUTS.match(line["message"]), line
    assert not TICKETS.search(line["message"]), line
    assert line["message"].isascii(), "no emojis"
    assert not OTHER_NAMES & set(line), line
    named = [ORDER.index(name) for name in told(line) if name in ORDER]
    assert named == sorted(named), line
    assert [name in ORDER for name in told(line)] == [True] * len(named) + [False] * (len(told(line)) - len(named)), (
        line
    )


def assert_says_whose(line: Mapping[str, Any], task: str, correlation: str) -> None:
    """A line that names the task, by whichever words, has its ids; one of a step has those of the attempt."""
    assert next(iter(told(line))) == "correlation_id", line
    assert (line["correlation_id"], line["task_uuid"], line["namespace"]) == (correlation, task, "logs"), line
    if "step_name" in line:
        assert line["step_uuid"] != task, line
        assert line["attempt"] >= 1, line


def told_of_the_process(lines: list[dict[str, Any]], name: str, core: str) -> list[tuple[str, Any]]:
    """What the published phrases of a start and a stop, in their order, call the identity, and which namespaces."""
    title = name[0].upper() + name[1:]
    begun = ["Configuration loaded", f"Starting {name} bootstrap", "System context initialized"]
    begun += [f"{core} core initialized", f"{title} bootstrap complete", f"{title} shutdown complete"]
    found = [line for line in lines if line["message"] in begun]
    assert [line["message"] for line in found] == begun
    assert any(line["message"].startswith("Initiating graceful shutdown") for line in lines)
    assert told(found[0]) == {"environment": "development"}
    context, complete = told(found[2]), told(found[4])
    namespaces = complete.pop("namespaces", None)
    assert context == complete
    return [(key, namespaces) for key in context]


@pytest.mark.parametrize("result_path", ["inline", "queued"])
async def test_every_line_says_whose_it_is_in_the_standard_order_and_in_the_published_phrases(
    fleet: Fleet, database_url: str, tmp_path: Path, result_path: str
) -> None:
    workflow = write_workflow(tmp_path / "told", TEMPLATE, HANDLERS)
    fleet.worker("worker", str(workflow), "--result-path", result_path)
    fleet.orchestrator("orchestrator")
    async with TaskRequester("pgmq", database_url=database_url) as requester:
        options = {"correlation_id": CORRELATION, "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        task = await requester.request("logs/told", {}, **options)
    finisher = "worker" if result_path == "inline" else "orchestrator"
    until(lambda: "Task finalized" in fleet.log(finisher), "it is told", show=lambda: fleet.log(finisher))
    fleet.stop()

    of_worker, of_orchestrator = (lines_of(fleet.log(name)) for name in ("worker", "orchestrator"))
    for line in of_worker + of_orchestrator:
        assert_standard(line)
        if task[:23] in json.dumps(line):  # its steps' identifiers begin like its own
            assert_says_whose(line, task, CORRELATION)
    for phrase, steps in OF_STEPS.items():
        about = [line for line in of_worker if line["message"].startswith(phrase)]
        assert {line["step_name"] for line in about} == steps, phrase
        assert {line["trace_id"] for line in about} == {TRACE}, phrase
    assert all("duration_ms" in line for line in of_worker if line["message"].startswith("Step completed"))
    worn = [
        (line["retry_count"], line["max_retries"])
        for line in of_worker
        if line.get("step_name") == "worn" and "error" in line
    ]
    assert worn == [(0, 1), (1, 1)]
    enqueued = [line for line in of_orchestrator if line["message"].startswith("Step enqueued: step_uuid=")]
    assert {line["step_name"] for line in enqueued} >= {"speaks", "in_a_process", "again", "worn", "refused", "pages"}
    assert {(line["trace_id"], line["queue"]) for line in enqueued} == {(TRACE, "worker_logs_queue")}
    (made,) = [line for line in of_orchestrator if line["message"] == f"Task initialized: task_uuid={task}"]
    (final,) = [line for line in of_worker + of_orchestrator if line["message"] == f"Task finalized: task_uuid={task}"]
    assert (made["step_count"], final["state"]) == (6, "error")
    assert made["trace_id"] == final["trace_id"] == TRACE
    assert told_of_the_process(of_worker, "worker", "Worker") == [("worker_id", ["logs"])]
    assert told_of_the_process(of_orchestrator, "orchestration system", "Orchestration") == [("processor_uuid", None)]
