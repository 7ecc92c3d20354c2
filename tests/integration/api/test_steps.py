"""What operators do to steps over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

import tasker
from tasker.views.model import decode
from tasker.views.steps import Attempt, Step
from tests.integration.api.program import order
from tests.integration.api.test_errors import problem

UNKNOWN = "0195c8f0-1d2e-7000-8000-000000000000"
ACTIONS: dict[str, dict[str, Any]] = {
    "resolve": {"action_type": "resolve_manually", "reason": "by hand", "resolved_by": "ada@example.com"},
    "complete": {
        "action_type": "complete_manually",
        "reason": "by hand",
        "completed_by": "ada@example.com",
        "completion_data": {"result": {"amount": 7}, "metadata": {"ticket": "T-1"}},
    },
    "reset": {"action_type": "reset_for_retry", "reason": "again", "reset_by": "ada@example.com"},
}


async def failed_task(client: httpx.AsyncClient, amount: int) -> tuple[str, str]:
    """A task in `error`, and the URL of its failed step."""
    made = (await client.post("/v1/tasks", json=order(amount), params={"wait": "20s"})).json()
    assert made["status"] == "error"
    return made["task_uuid"], f"/v1/tasks/{made['task_uuid']}/workflow_steps/{made['steps'][0]['workflow_step_uuid']}"


async def test_a_failed_step_says_what_is_wrong_with_it(client: httpx.AsyncClient) -> None:
    task, url = await failed_task(client, -1)

    steps = [decode(Step, each) for each in (await client.get(url.rsplit("/", 1)[0])).json()]
    assert [(step.name, step.current_state, step.dependencies_satisfied) for step in steps] == [
        ("check", "error", True),
        ("charge", "pending", False),
    ]
    one = decode(Step, (await client.get(url)).json())
    assert one.last_error == "less than nothing"
    assert one.step_uuid == one.workflow_step_uuid
    assert one.task_uuid == task
    assert one.last_failure_at is not None


@pytest.mark.parametrize(("kind", "state"), [("resolve", "resolved_manually"), ("complete", "complete")])
async def test_a_step_that_is_taken_as_done_lets_its_task_go_on(
    client: httpx.AsyncClient, kind: str, state: str
) -> None:
    task, url = await failed_task(client, -2 if kind == "resolve" else -3)

    answer = await client.patch(url, json=ACTIONS[kind])

    assert answer.status_code == 200, answer.text
    assert decode(Step, answer.json()).current_state == state
    assert (await client.get(f"/v1/tasks/{task}", params={"wait": "20s"})).json()["status"] == "complete"


async def test_what_is_completed_by_hand_is_audited_with_its_result(client: httpx.AsyncClient) -> None:
    task, url = await failed_task(client, -4)
    await client.patch(url, json=ACTIONS["complete"])
    await client.get(f"/v1/tasks/{task}", params={"wait": "20s"})

    steps = (await client.get(f"/v1/tasks/{task}/workflow_steps")).json()
    assert steps[0]["results"] == {"amount": 7}
    audits = (await client.get(f"/v1/tasks/{task}/workflow_steps/{steps[1]['step_uuid']}/audit")).json()
    (audit,) = [decode(Attempt, each) for each in audits]
    assert (audit.step_name, audit.success, audit.result) == ("charge", True, {"charged": True})


async def test_a_step_that_is_reset_runs_again(client: httpx.AsyncClient, app: tasker.App) -> None:
    task, url = await failed_task(client, -5)

    answer = await client.patch(url, json=ACTIONS["reset"])

    assert answer.status_code == 200
    assert (await client.get(f"/v1/tasks/{task}", params={"wait": "20s"})).json()["status"] == "error"
    transitions = (await client.get(f"/v1/tasks/{task}/details")).json()["step_transitions"]
    assert [each["to_state"] for each in transitions].count("error") == 2


async def test_what_a_state_does_not_allow_is_refused_and_says_what_is_possible(client: httpx.AsyncClient) -> None:
    made = (await client.post("/v1/tasks", json=order(6), params={"wait": "20s"})).json()
    url = f"/v1/tasks/{made['task_uuid']}/workflow_steps/{made['steps'][0]['workflow_step_uuid']}"

    found = problem(await client.patch(url, json=ACTIONS["reset"]), 400, "BAD_REQUEST", "illegal_transition")

    assert found.hint
    assert "complete" in found.detail


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action_type": "delete"},
        {"action_type": "reset_for_retry", "reason": "x"},
        {"action_type": "reset_for_retry", "reason": "x", "resolved_by": "y"},
        {**ACTIONS["complete"], "completion_data": {"result": 5}},
        {**ACTIONS["complete"], "completion_data": {}},
    ],
)
async def test_a_malformed_action_changes_nothing(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    task, url = await failed_task(client, -100 - len(str(body)))

    problem(await client.patch(url, json=body), 400, "BAD_REQUEST", "malformed_request")

    assert (await client.get(f"/v1/tasks/{task}")).json()["status"] == "error"


async def test_unknown_tasks_and_steps_are_not_found(client: httpx.AsyncClient) -> None:
    task, _ = await failed_task(client, -7)

    problem(await client.get(f"/v1/tasks/{UNKNOWN}/workflow_steps"), 404, "NOT_FOUND", "task_not_found")
    for path in (
        f"/v1/tasks/{task}/workflow_steps/{UNKNOWN}",
        f"/v1/tasks/{task}/workflow_steps/{UNKNOWN}/audit",
        f"/v1/tasks/{task}/workflow_steps/{UNKNOWN}/inputs",
    ):
        problem(await client.get(path), 404, "NOT_FOUND", "step_not_found")
    answer = await client.patch(f"/v1/tasks/{task}/workflow_steps/{UNKNOWN}", json=ACTIONS["reset"])
    problem(answer, 404, "NOT_FOUND", "step_not_found")


async def test_a_task_runs_again_from_a_step_with_another_input_as_a_task_of_its_own(
    client: httpx.AsyncClient,
) -> None:
    task, _ = await failed_task(client, -11)
    url = f"/v1/tasks/{task}/rerun"

    problem(await client.post(url, json={"from_step": "chek"}), 404, "NOT_FOUND")
    problem(await client.post(url, json={"from_step": "check", "context": {"amount": "much"}}), 422, "BAD_REQUEST")
    begun = await client.post(url, json={"from_step": "check", "context": order(12)["context"], "actor": "ada"})

    other = await client.post(url, json={"set": {"amount": 13, "customer.id": "C-7"}})
    problem(await client.post(url, json={"set": {"amount.cents": 1}}), 400, "BAD_REQUEST", "usage_error")

    context = (await client.get(f"{other.headers['location']}/context")).json()["context"]
    assert context == {"amount": 13, "customer": {"id": "C-7"}}
    assert begun.status_code == 201, begun.text
    assert begun.json() == {"task_uuid": begun.headers["location"].split("/")[-1], "steps": 2, "reused": 0}
    assert (await client.get(begun.headers["location"], params={"wait": "20s"})).json()["status"] == "complete"
    assert (await client.get(f"/v1/tasks/{task}")).json()["status"] == "error"
