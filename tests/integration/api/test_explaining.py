"""`GET /v1/tasks/{uuid}/explain`."""

from __future__ import annotations

import httpx
import pytest_asyncio

import tasker
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tasker.views.explanation import Explanation
from tasker.views.model import decode
from tests.integration.api.program import WAITING
from tests.support.registered import submit_registered

UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest_asyncio.fixture(loop_scope="module")
async def waiting(app: tasker.App) -> str:
    """A task whose namespace nobody serves."""
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    return (await submit_registered(app, plan, Submission())).task_uuid


async def test_a_task_is_explained_as_the_command_does_it(client: httpx.AsyncClient, waiting: str) -> None:
    answer = await client.get(f"/v1/tasks/{waiting}/explain")

    found = decode(Explanation, answer.json())
    assert (answer.status_code, found.needs_somebody) == (200, True)
    (reason,) = found.reasons
    assert (reason.reason, reason.steps, reason.values["namespace"]) == ("nobody", ["never"], "nobody")
    assert reason.sentence() == "no live worker serves nobody.never: no worker is running in the namespace nobody"
    assert reason.remedy() == "start one: tasker worker --namespace nobody --handlers MODULE"


async def test_one_step_is_asked_for_by_name(client: httpx.AsyncClient, waiting: str) -> None:
    url = f"/v1/tasks/{waiting}/explain"
    found = await client.get(url, params={"step": "never"})
    missing = await client.get(url, params={"step": "ever"})

    assert [reason["steps"] for reason in found.json()["reasons"]] == [["never"]]
    assert (missing.status_code, missing.json()["code"]) == (404, "step_not_found")
    assert missing.json()["hint"] == "its template has: never"


async def test_a_task_that_there_is_not_is_404(client: httpx.AsyncClient) -> None:
    assert (await client.get(f"/v1/tasks/{UNKNOWN}/explain")).status_code == 404
