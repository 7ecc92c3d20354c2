"""A template with a unique key over HTTP: the task that runs under the key is answered, to those who may read it."""

from __future__ import annotations

import httpx
import pytest_asyncio

import tasker
from tasker.template import compile_text

SYNC = """
name: sync
namespace: nobody
version: 1.0.0
unique: {key: input.customer}
steps: [{name: never, handler: nobody.never}]
"""


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def _registered(app: tasker.App) -> None:
    await app.plans.register(compile_text(SYNC).plans[0])


def sync(customer: str, **more: object) -> dict[str, object]:
    return {"namespace": "nobody", "name": "sync", "context": {"customer": customer}, **more}


async def test_the_running_task_is_answered_with_200_and_says_why(client: httpx.AsyncClient) -> None:
    first = await client.post("/v1/tasks", json=sync("one"))
    again = await client.post("/v1/tasks", json=sync("one", initiator="another"))
    keyed = await client.post("/v1/tasks", json=sync("one"), headers={"Idempotency-Key": "k"})

    assert (first.status_code, first.json()["created"], first.json()["unique"]) == (201, True, False)
    for answer in (again, keyed):
        assert (answer.status_code, answer.json()["task_uuid"]) == (200, first.json()["task_uuid"])
        assert (answer.json()["created"], answer.json()["unique"]) == (False, True)
        assert answer.json()["message"] == "A task with this unique key runs"


async def test_a_batch_counts_it_among_the_existing_ones(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/tasks/batch", json={"tasks": [sync("two"), sync("two"), sync("three")]})

    results = answer.json()["results"]
    assert [each["status"] for each in results] == [201, 200, 201]
    assert (results[1]["task_uuid"], results[1]["unique"]) == (results[0]["task_uuid"], True)
    assert (answer.json()["created"], answer.json()["existing"]) == (2, 1)
