"""An operator mends a task whose batches failed, over HTTP alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio
from psycopg.rows import dict_row
from pydantic import BaseModel

import tasker
from tasker.errors import PermanentError
from tasker.handlers.batch_arithmetic import Batches
from tasker.handlers.decisions import BatchConfig
from tasker.handlers.decorators import batch_aggregator, batch_analyzer, batch_worker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.server.application import application
from tasker.step_handler import inputs
from tasker.template import compile_text
from tasker.types import BatchWorkerOutcome
from tests.docs.snippets import snippets
from tests.integration.api.test_errors import problem
from tests.integration.api.test_steps import ACTIONS
from tests.support.repository import ROOT

IMPORT = """
name: import
namespace: files
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: analyze, type: batchable, handler: files.analyze}
  - {name: process, type: batch_worker, dependencies: [analyze], handler: files.process, retry: {max_attempts: 1}}
  - {name: total, type: deferred_convergence, dependencies: [process], handler: files.total}
"""


QUERIES = [
    snippet.text
    for snippet in snippets((ROOT / "docs/sql.md").read_text())
    if "batch_worker" in snippet.text or "silent_for" in snippet.text
]
"""What the page about SQL tells operators to ask."""


class Part(BaseModel):
    items_processed: int = 0


class Storage:
    """What the batches read from: at times it has too little memory."""

    most_rows = 1000
    broken: frozenset[int] = frozenset()


@batch_analyzer("files.analyze", worker_template="process")
@inputs("rows", "batch_size")
def analyze(rows: int, batch_size: int) -> BatchConfig:
    return BatchConfig(total_items=rows, batch_size=batch_size)


@batch_worker("files.process")
def process(batch_context: Any) -> BatchWorkerOutcome:
    first, rows = batch_context.start_cursor, batch_context.end_cursor - batch_context.start_cursor
    if first in Storage.broken or rows > Storage.most_rows:
        raise PermanentError(f"the rows from {first} on cannot be read", error_code="UNREADABLE")
    return BatchWorkerOutcome(items_processed=rows, items_succeeded=rows)


@batch_aggregator("files.total", analyzer="analyze", worker_template=("process", Part))
def total(batches: Batches[Part]) -> dict[str, Any]:
    return {"rows": sum(part.items_processed for part in batches.results.values()), "missing": list(batches.missing)}


@pytest_asyncio.fixture
async def client(module_database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    registry = HandlerRegistry()
    for name, handler in {"analyze": analyze, "process": process, "total": total}.items():
        registry.register(f"files.{name}", handler)
    async with tasker.App(module_database_url, registry=registry) as app:
        (plan,) = compile_text(IMPORT).plans
        await app.plans.register(plan, force=True)
        await app.plan(plan)
        transport = httpx.ASGITransport(app=application(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as made:
            yield made


def rows(url: str, query: str) -> list[dict[str, Any]]:
    """What an operator sees in a SQL shell."""
    with psycopg.connect(url, row_factory=dict_row) as shell:
        return shell.execute(query).fetchall()


async def imported(client: httpx.AsyncClient, batch_size: int = 10) -> dict[str, Any]:
    """A task of fifty rows, as it has ended."""
    request = {"namespace": "files", "name": "import", "context": {"rows": 50, "batch_size": batch_size}}
    made: dict[str, Any] = (await client.post("/v1/tasks", json=request, params={"wait": "20s"})).json()
    return made


async def mended(client: httpx.AsyncClient, task: str, action: str) -> dict[str, Any]:
    """Do this to each failed step of the task, and give the result of its end."""
    url = f"/v1/tasks/{task}/workflow_steps"
    for step in (await client.get(url)).json():
        if step["current_state"] == "error":
            answer = await client.patch(f"{url}/{step['workflow_step_uuid']}", json=ACTIONS[action])
            assert answer.status_code == 200, answer.text
    assert (await client.get(f"/v1/tasks/{task}", params={"wait": "20s"})).json()["status"] == "complete"
    (end,) = [step for step in (await client.get(url)).json() if step["name"] == "total"]
    result: dict[str, Any] = end["results"]
    return result


async def test_batches_that_failed_for_a_cause_that_is_gone_run_again(
    client: httpx.AsyncClient, module_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as outage:
        outage.setattr(Storage, "broken", frozenset({0, 20, 40}))
        made = await imported(client)
    failed = {step["name"]: step for step in made["steps"] if step["current_state"] == "error"}

    assert made["status"] == "error"
    assert sorted(failed) == ["process_001", "process_003", "process_005"]
    assert "from 20 on" in failed["process_003"]["last_error"]
    counted, shown, _ = (rows(module_database_url, query) for query in QUERIES)
    assert [(each["workers"], each["complete"], each["failed"]) for each in counted] == [(5, 2, 3)]
    assert [each["name"] for each in shown] == sorted(failed)
    assert all("cannot be read" in each["last_error"] for each in shown)
    assert await mended(client, made["task_uuid"], "reset") == {"rows": 50, "missing": []}


@pytest.mark.parametrize(
    ("action", "end"),
    [("complete", {"rows": 47, "missing": []}), ("resolve", {"rows": 40, "missing": ["process_003"]})],
)
async def test_a_poisoned_batch_is_given_its_result_or_taken_as_done_without(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, action: str, end: dict[str, Any]
) -> None:
    monkeypatch.setattr(Storage, "broken", frozenset({20}))
    by_hand = {"result": {"items_processed": 7}, "metadata": {}}
    monkeypatch.setitem(ACTIONS, "complete", {**ACTIONS["complete"], "completion_data": by_hand})
    made = await imported(client)

    assert await mended(client, made["task_uuid"], action) == end


async def test_a_task_whose_batches_are_too_large_is_given_up_and_submitted_with_smaller_ones(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task in `error` has ended: there is nothing to cancel, and its entry says that it stays so."""
    monkeypatch.setattr(Storage, "most_rows", 5)
    made = await imported(client)
    queued = (await client.get("/v1/dlq/investigation-queue")).json()
    (entry,) = [each["dlq_entry_uuid"] for each in queued if each["task_uuid"] == made["task_uuid"]]

    problem(await client.delete(f"/v1/tasks/{made['task_uuid']}"), 400, "BAD_REQUEST", "state_machine_error")
    closing = {"resolution_status": "permanently_failed", "resolution_notes": "too large", "resolved_by": "ann"}
    closed = await client.patch(f"/v1/dlq/entry/{entry}", json=closing)
    smaller = await imported(client, batch_size=5)

    assert closed.status_code == 200, closed.text
    assert smaller["status"] == "complete"
