"""A client that was generated for the published interface works: ours has every path, parameter, field and status."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx
import pytest

from tasker.server.application import described
from tests.integration.api.program import order
from tests.integration.api.published import lacks, misfits, operations, resolved, same_place, shape
from tests.integration.api.test_errors import UNKNOWN
from tests.integration.api.test_tasks import ORIGINAL

ABSENT = {
    "GET /config": "offered where it is configured",
}
PRESENT = [
    (method, path, facts) for method, path, facts in operations("orchestration") if f"{method} {path}" not in ABSENT
]
NAMES = [f"{method} {path}" for method, path, _ in PRESENT]


@cache
def document() -> dict[str, Any]:
    """Made when a test asks: it takes longer than collecting all tests of this folder."""
    return described().openapi()


@cache
def paths() -> dict[str, dict[str, Any]]:
    return {same_place(path): operations for path, operations in document()["paths"].items()}


def ours(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = paths()[same_place(path)][method.lower()]
    return found


def test_what_is_absent_is_known() -> None:
    published = {f"{method} {path}" for method, path, _ in operations("orchestration")}
    absent = {name for name in published if name.split()[0].lower() not in paths().get(same_place(name.split()[1]), {})}

    assert absent == set(ABSENT)


@pytest.mark.parametrize(("method", "path", "facts"), PRESENT, ids=NAMES)
def test_every_parameter_is_taken_and_no_other_is_required(method: str, path: str, facts: dict[str, Any]) -> None:
    wanted = {each.split(":")[1].rstrip("?") for each in facts.get("parameters", ()) if each.startswith("query:")}
    found = [each for each in ours(method, path).get("parameters", ()) if each["in"] == "query"]

    assert wanted <= {each["name"] for each in found}
    assert not [each["name"] for each in found if each["required"]]


@pytest.mark.parametrize(("method", "path", "facts"), PRESENT, ids=NAMES)
def test_every_answer_has_every_field(method: str, path: str, facts: dict[str, Any]) -> None:
    answers = ours(method, path)["responses"]

    assert set(facts["answers"]) <= set(answers), "statuses"
    success, name = next((status, name) for status, name in facts["answers"].items() if status.startswith("2"))
    schema = answers[success]["content"]["application/json"]["schema"]
    assert list(lacks(document(), schema, "orchestration", name)) == []


def test_a_request_may_have_every_field_and_needs_none_more() -> None:
    body = ours("POST", "/v1/tasks")["requestBody"]["content"]["application/json"]["schema"]
    fields, published = resolved(document(), body), shape("orchestration", "TaskRequest")

    assert {name.rstrip("?") for name in published} <= set(fields["properties"])
    assert set(fields.get("required", ())) <= {name for name in published if not name.endswith("?")}


async def test_real_answers_have_the_published_fields_and_types(client: httpx.AsyncClient) -> None:
    made = await client.post("/v1/tasks", json=order(1, **ORIGINAL), params={"wait": "20s"})
    failed = await client.post("/v1/tasks", json=order(-1), params={"wait": "20s"})
    task = made.json()["task_uuid"]
    step = made.json()["steps"][0]["workflow_step_uuid"]
    broken, wrong = failed.json()["task_uuid"], failed.json()["steps"][0]["workflow_step_uuid"]
    action = {"action_type": "reset_for_retry", "reason": "again", "reset_by": "ada"}
    answers = {
        "POST /v1/tasks": made,
        "PATCH /v1/tasks/{uuid}/workflow_steps/{step_uuid}": await client.patch(
            f"/v1/tasks/{broken}/workflow_steps/{wrong}", json=action
        ),
    }
    unknown = f"/v1/dlq/entry/{UNKNOWN}"
    answers["PATCH /v1/dlq/entry/{dlq_entry_uuid}"] = await client.patch(unknown, json={"resolution_notes": "seen"})
    known = {
        "{task_uuid}": task,
        "{uuid}": task,
        "{step_uuid}": step,
        "{namespace}": "shop",
        "{name}": "orders",
        "{version}": "1.0.0",
    }
    for method, path, facts in PRESENT:
        url = path
        for name, value in known.items():
            url = url.replace(name, value)
        answer = answers.get(f"{method} {path}") or await client.request(method, url)
        name = facts["answers"].get(str(answer.status_code))
        assert name, f"{method} {path}: {answer.status_code} {answer.text}"
        if answer.is_success:
            assert list(misfits(answer.json(), "orchestration", name)) == [], f"{method} {path}"
        else:
            assert set(answer.json()["error"]) >= {"code", "message"}
