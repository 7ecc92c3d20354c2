"""What a server with authentication answers, operation by operation, fits its description."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import jsonschema

import tasker
from tasker.operations.approvals import APPROVALS
from tasker.server.application import described
from tasker.template import compile_text
from tests.integration.api.program import CARDS, WAITING, order
from tests.integration.api.test_access import by, guarded

__all__ = ("guarded",)
ASKED = """
name: asked
namespace: shop
version: 1.0.0
identity_strategy: always_unique
input_schema: {type: object, required: [number], properties: {number: {type: string, x-sensitive: true}}}
steps:
  - name: approve
    type: approval
    quorum: 2
    inputs: {number: "${input.number}", question: "Charge ${input.number}?"}
    form: {type: object, properties: {code: {type: string, x-sensitive: true}}}
    timeout: never
"""
DOCUMENT = described().openapi()
FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def is_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@FORMATS.checks("uuid", raises=ValueError)
def is_identifier(value: object) -> bool:
    return not isinstance(value, str) or str(UUID(value)) == value


def misfits(answer: httpx.Response, responses: dict[str, Any]) -> Iterator[str]:
    """Yield where an answer is not what is described for its status and media type."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    described = responses.get(str(answer.status_code))
    if described is None or kind not in described["content"]:
        yield f"{answer.status_code} {kind} is not described: {answer.text[:200]}"
    elif kind.endswith("json"):
        schema = {**described["content"][kind]["schema"], "components": DOCUMENT["components"]}
        validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
        for error in validator.iter_errors(answer.json()):
            yield f"{answer.status_code} {error.json_path}: {error.message[:200]}"


async def half_approved(app: tasker.App, number: str, code: str) -> str:
    """A task that one of two persons has approved, with its sensitive values in the comment too."""
    (plan,) = compile_text(ASKED).plans
    task = (await app.submit(plan, {"number": number})).task_uuid
    while not any(row.task_uuid == task for row in await app.approvals.list(template="asked")):
        await asyncio.sleep(0.02)
    form, comment = {"code": code}, f"the card {number}, with {code}"
    await app.approvals.decide(task, "approve", "approved", actor="ada", form=form, comment=comment)
    return task


def of_path(path: str, named: dict[str, str]) -> dict[str, str]:
    """The parameters of this path: the task of an approval is the one that is `asked`."""
    return {**named, "task_uuid": named["asked"]} if path.startswith(APPROVALS) else named


async def scene(app: tasker.App, client: httpx.AsyncClient) -> dict[str, str]:
    """Tasks in several states, one of each list at least; the path parameters that name what there is."""
    root = by("everything")
    for template in (CARDS, WAITING):
        (plan,) = compile_text(template).plans
        await app.plans.register(plan)
    await client.post("/v1/tasks?wait=20s", json=order(3, tags=["a"], reason="again"), headers=root)
    card = {"number": "4111", "brand": "visa"}
    asked = {"namespace": "shop", "name": "cards", "context": {"card": card}}
    failed = (await client.post("/v1/tasks?wait=20s", json=asked, headers=root)).json()
    assert failed["status"] == "error"
    waiting = {"namespace": "nobody", "name": "waiting"}
    await client.post("/v1/tasks", json=waiting, headers=root)
    (entry, *_) = (await client.get("/v1/dlq", headers=root)).json()
    replaying = {"namespace": "shop", "rate_per_second": 1}
    replay = await client.post("/v1/dlq/replays", json=replaying, headers=root)
    assert replay.status_code == 200, replay.text
    await client.post("/v1/pauses", json={"namespace": "nobody", "reason": "look"}, headers=root)
    nightly = {"cron": "0 2 * * *", "context": {"card": card}}
    named = {"namespace": "shop", "template": "cards", "name": "cards"}
    schedule = await client.post("/v1/schedules", json={**named, "schedule": nightly}, headers=root)
    assert schedule.status_code == 201, schedule.text
    named |= {"version": "1.0.0", "dlq_entry_uuid": entry["dlq_entry_uuid"], "step": "approve"}
    named["asked"] = await half_approved(app, "4111", "77")
    task = failed["task_uuid"]
    step = failed["steps"][-1]["workflow_step_uuid"]
    return {**named, "uuid": task, "task_uuid": task, "step_uuid": step, "replay_uuid": replay.json()["replay_uuid"]}


async def test_answers_of_all_reads_fit_the_description_with_authentication_on(
    app: tasker.App, guarded: httpx.AsyncClient
) -> None:
    named = await scene(app, guarded)
    wrong: list[str] = []
    for path, operations in DOCUMENT["paths"].items():
        operation = operations.get("get")
        if operation is None or "text/event-stream" in operation["responses"]["200"]["content"]:
            continue
        for headers in (by("everything"), {}):
            answer = await guarded.get(path.format(**of_path(path, named)), headers=headers, params=NEEDED.get(path))
            wrong += [f"GET {path}: {each}" for each in misfits(answer, operation["responses"])]

    assert wrong == []


NEEDED = {"/v1/listings/identifiers": {"beginning": "0"}}
