"""`/v1/dlq`: the six operations, in the published names and words."""

from __future__ import annotations

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.server.shapes.dead_letters import DlqEntry, DlqInvestigationQueueEntry, DlqStats, StalenessMonitoring
from tasker.services.submission.submit import Submission
from tests.support.registered import submit_registered

UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest_asyncio.fixture(loop_scope="module")
async def failed(app: tasker.App) -> str:
    """A task that has failed for good."""
    return await failing(app, "dead letter")


async def failing(app: tasker.App, key: str) -> str:
    plan = (await app.plans.find("shop", "orders", "1.0.0")).plan
    task = await submit_registered(app, plan, Submission({"amount": -1}, idempotency_key=key), on_duplicate="return")
    await app.finished(task.task_uuid, timeout=20)
    return task.task_uuid


async def test_a_task_that_failed_is_listed_counted_queued_and_shown(client: httpx.AsyncClient, failed: str) -> None:
    listed = [DlqEntry(**each) for each in (await client.get("/v1/dlq")).json()]
    shown = DlqEntry(**(await client.get(f"/v1/dlq/task/{failed}")).json())
    queued = [DlqInvestigationQueueEntry(**each) for each in (await client.get("/v1/dlq/investigation-queue")).json()]
    stats = [DlqStats(**each) for each in (await client.get("/v1/dlq/stats")).json()]

    assert failed in [each.task_uuid for each in listed]
    assert (shown.dlq_reason, shown.resolution_status) == ("PermanentFailure", "Pending")
    assert shown.task_snapshot["workflow_steps"][0]["last_error"]["message"] == "less than nothing"
    assert failed in [each.task_uuid for each in queued]
    assert sum(each.pending for each in stats) == len(queued)


@pytest.mark.parametrize("word", ["manually_resolved", "ManuallyResolved"])
async def test_an_investigation_is_kept_and_closed(client: httpx.AsyncClient, failed: str, word: str) -> None:
    entry = (await client.get(f"/v1/dlq/task/{failed}")).json()["dlq_entry_uuid"]
    url = f"/v1/dlq/entry/{entry}"

    noted = await client.patch(url, json={"metadata": {"root_cause": "price list"}})
    assert noted.json() == {"success": True, "message": noted.json()["message"], "dlq_entry_uuid": entry}
    closed = await client.patch(
        url, json={"resolution_status": word, "resolution_notes": "corrected", "resolved_by": "ann"}
    )

    assert closed.status_code == 200
    after = DlqEntry(**(await client.get(f"/v1/dlq/task/{failed}")).json())
    assert (after.resolution_status, after.resolved_by) == ("ManuallyResolved", "ann")
    assert (after.resolution_notes, after.metadata) == ("corrected", {"root_cause": "price list"})
    assert after.resolution_timestamp is not None
    resolved = (await client.get("/v1/dlq", params={"resolution_status": word})).json()
    assert entry in [each["dlq_entry_uuid"] for each in resolved]


async def test_a_task_goes_on_and_its_entry_is_closed_in_one_request(
    app: tasker.App, client: httpx.AsyncClient
) -> None:
    entry = (await client.get(f"/v1/dlq/task/{await failing(app, 'goes on')}")).json()["dlq_entry_uuid"]

    done = await client.post(f"/v1/dlq/entry/{entry}/retry", json={"reason": "the price is right", "actor": "ann"})

    assert (done.status_code, done.json()) == (200, {"reset": ["check"], "left": []})
    after = DlqEntry(**(await client.get(f"/v1/dlq/entry/{entry}")).json())
    assert (after.resolution_status, after.resolved_by) == ("ManuallyResolved", "ann")
    assert after.resolution_notes == "retried: the price is right"


@pytest.mark.parametrize(
    "body",
    [
        {"resolution_notes": "\0"},
        {"resolved_by": "\0", "resolution_status": "cancelled"},
        {"metadata": {"a": "\0"}},
        {"resolution_state": "cancelled"},
    ],
)
async def test_what_cannot_be_kept_and_what_has_no_meaning_is_refused(
    client: httpx.AsyncClient, failed: str, body: dict[str, object]
) -> None:
    before = (await client.get(f"/v1/dlq/task/{failed}")).json()

    assert (await client.patch(f"/v1/dlq/entry/{before['dlq_entry_uuid']}", json=body)).status_code in (400, 422)
    assert (await client.get(f"/v1/dlq/task/{failed}")).json() == before


async def test_open_tasks_are_told_with_their_health(app: tasker.App, client: httpx.AsyncClient) -> None:
    found = (await client.get("/v1/dlq/staleness", params={"limit": 5})).json()
    assert all(StalenessMonitoring(**each) for each in found)


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", f"/v1/dlq/task/{UNKNOWN}", 404),
        ("GET", "/v1/dlq/task/nonsense", 400),
        ("PATCH", f"/v1/dlq/entry/{UNKNOWN}", 404),
        ("POST", f"/v1/dlq/entry/{UNKNOWN}/retry", 404),
        ("GET", "/v1/dlq?resolution_status=solved", 400),
        ("GET", "/v1/dlq?limit=0", 400),
    ],
)
async def test_what_is_not_there_or_makes_no_sense_is_refused(
    client: httpx.AsyncClient, method: str, url: str, status: int
) -> None:
    answer = await client.request(method, url, json={"PATCH": {"resolution_notes": "x"}, "POST": {}}.get(method))

    assert answer.status_code == status
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/dlq", "/v1/dlq/investigation-queue", "/v1/dlq/staleness"])
async def test_a_page_has_an_end(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path, params={"limit": 500})).status_code == 200
    assert (await client.get(path, params={"limit": 501})).status_code == 400
