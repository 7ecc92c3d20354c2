"""Creating, reading and cancelling tasks over HTTP."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

import tasker
from tasker.template import compile_text
from tasker.views.model import decode
from tasker.views.task_details import TaskContext, TaskDetails
from tasker.views.tasks import TaskCreated, TaskPage
from tests.integration.api.program import WAITING, order

ORIGINAL = {
    "reason": "an order came in",
    "initiator": "shop",
    "source_system": "checkout",
    "requested_at": "2026-01-01T00:00:00Z",
    "tags": ["web"],
    "correlation_id": "0195c8f0-1d2e-7000-8000-000000000001",
    "options": None,
    "priority": None,
    "idempotency_key": None,
}


async def created(client: httpx.AsyncClient, body: dict[str, Any], **params: str) -> dict[str, Any]:
    answer = await client.post("/v1/tasks", json=body, params=params)
    assert answer.status_code == 201, answer.text
    decode(TaskCreated, answer.json())
    return dict(answer.json())


async def test_a_request_in_the_published_form_is_answered_in_the_published_form(client: httpx.AsyncClient) -> None:
    task = await created(client, order(1, **ORIGINAL), wait="20s")

    assert task["status"] == task["current_state"] == "complete"
    assert (task["step_count"], task["total_steps"], task["completed_steps"]) == (2, 2, 2)
    assert (task["initiator"], task["source_system"], task["tags"]) == ("shop", "checkout", ["web"])
    assert task["correlation_id"] == ORIGINAL["correlation_id"]
    assert task["message"] == "Task created successfully"
    assert [step["name"] for step in task["steps"]] == ["check", "charge"]
    assert task["duration_ms"] is not None


async def test_both_spellings_of_template_and_input_are_taken(client: httpx.AsyncClient) -> None:
    body = {"namespace": "shop", "template_name": "orders", "configuration": {"amount": 2}}

    task = await created(client, body)

    assert (task["name"], task["version"], task["context"]) == ("orders", "1.0.0", {"amount": 2})


async def test_waiting_ends_when_the_task_ends_or_the_time_is_over(client: httpx.AsyncClient, app: tasker.App) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan)
    waiting = await created(client, {"namespace": "nobody", "name": "waiting"}, wait="1ms")
    assert waiting["status"] != "complete"

    url = f"/v1/tasks/{waiting['task_uuid']}"
    assert (await client.get(url, params={"wait": "1ms"})).json()["status"] == waiting["status"]
    cancelled = await client.delete(url, params={"reason": "nobody came"})
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert (await client.get(url, params={"wait": "20s"})).json()["status"] == "cancelled"
    again = await client.delete(url)
    assert (again.status_code, again.json()["code"]) == (400, "state_machine_error")


@pytest.mark.parametrize("wait", ["x", "-1s", "1h", "6m", "1e9s", ""])
async def test_a_time_that_cannot_be_waited_is_refused_before_anything_is_created(
    client: httpx.AsyncClient, wait: str
) -> None:
    before = (await client.get("/v1/tasks")).json()["pagination"]["total_count"]

    answer = await client.post("/v1/tasks", json=order(3), params={"wait": wait})

    assert answer.status_code == 400
    assert (await client.get("/v1/tasks")).json()["pagination"]["total_count"] == before


async def test_a_duplicate_is_refused_without_naming_the_task_unless_it_was_asked_for(
    client: httpx.AsyncClient,
) -> None:
    first = await created(client, order(10, context={"amount": 10, "note": {"a": 1, "b": 2}}))

    again = order(10, context={"note": {"b": 2, "a": 1}, "amount": 10})
    refused = await client.post("/v1/tasks", json=again)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "CONFLICT"
    assert first["task_uuid"] not in refused.text
    existing = await client.post("/v1/tasks", json={**again, "on_duplicate": "return_existing"})
    assert existing.status_code == 200
    assert (existing.json()["task_uuid"], existing.json()["created"]) == (first["task_uuid"], False)


async def test_a_batch_answers_for_each_of_its_tasks(client: httpx.AsyncClient) -> None:
    orders = [order(20), order(20), order(21), order("many"), {"name": "nothing"}, {**order(22), "namespace": "b c"}]
    answer = await client.post("/v1/tasks/batch", json={"tasks": orders})

    assert answer.status_code == 200
    found = answer.json()
    assert [each["status"] for each in found["results"]] == [201, 409, 201, 422, 400, 400]
    assert (found["created"], found["existing"], found["refused"]) == (2, 0, 4)
    assert found["results"][3]["problem"]["errors"] == [
        {"pointer": "/context/amount", "message": "expected a whole number, found the text 'many'"}
    ]
    assert found["results"][4]["problem"]["code"] == "template_not_found"


async def test_a_batch_that_takes_what_exists_counts_it_apart(client: httpx.AsyncClient) -> None:
    first = await created(client, order(26))
    orders = [order(26), order(27), order(27), order("many"), order(26)]
    answer = await client.post("/v1/tasks/batch", json={"tasks": orders, "on_duplicate": "return_existing"})

    found = answer.json()
    assert [each["status"] for each in found["results"]] == [200, 201, 200, 422, 200]
    assert (found["created"], found["existing"], found["refused"]) == (1, 3, 1)
    assert [found["results"][place]["task_uuid"] for place in (0, 4)] == [first["task_uuid"]] * 2
    assert found["results"][1]["task_uuid"] == found["results"][2]["task_uuid"]


async def test_pages_hold_every_task_once_whatever_is_created_meanwhile(client: httpx.AsyncClient) -> None:
    made = [
        (await created(client, order(n, initiator="pages", tags=["p", str(n)])))["task_uuid"] for n in range(30, 35)
    ]

    for sort, expected in (("-created_at", made[::-1]), ("created_at", made)):
        seen: list[str] = []
        params: dict[str, Any] = {"initiator": "pages", "per_page": 2, "sort": sort}
        while True:
            answer = decode(TaskPage, (await client.get("/v1/tasks", params=params)).json())
            seen += [task.task_uuid for task in answer.tasks]
            if answer.pagination.next_cursor is None:
                break
            params["cursor"] = answer.pagination.next_cursor
        assert seen == expected

    numbered = (await client.get("/v1/tasks", params={"initiator": "pages", "per_page": 2, "page": 1})).json()
    assert [task["task_uuid"] for task in numbered["tasks"]] == made[::-1][2:4]
    assert numbered["pagination"]["total_count"] == 5
    assert numbered["pagination"]["total_pages"] == 3


async def test_a_page_that_a_bounded_search_cannot_fill_says_where_to_look_on(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FEW", "NEAR", "LOOKED_INTO"):
        monkeypatch.setattr(f"tasker.services.tasks.lists.{name}", 1)
    monkeypatch.setattr("tasker.services.tasks.search.COUNTED", 3)
    made = [(await created(client, order(n, tags=["often"])))["task_uuid"] for n in (7060, 7061)]
    others = [await created(client, order(n, tags=["seldom"])) for n in (7062, 7063)]

    params: dict[str, Any] = {"tag": "often", "namespace": "shop", "per_page": 2}
    first = (await client.get("/v1/tasks", params=params)).json()
    assert first["tasks"] == []
    assert len(others) == 2
    told = first["pagination"]
    assert (told["has_next"], told["total_count"], told["total_is_minimum"]) == (True, 1, True)
    seen: list[str] = []
    pagination = told
    while pagination["has_next"]:
        found = (await client.get("/v1/tasks", params={**params, "cursor": pagination["next_cursor"]})).json()
        seen += [task["task_uuid"] for task in found["tasks"]]
        pagination = found["pagination"]
    assert seen == made[::-1]


async def test_each_filter_leaves_out_what_it_does_not_mean(client: httpx.AsyncClient) -> None:
    task = await created(client, order(40, initiator="filters", source_system="here", tags=["x", "y"]), wait="20s")
    base = {"initiator": "filters"}
    fits = [
        {"namespace": "shop"},
        {"status": "complete"},
        {"name": "orders"},
        {"version": "1.0.0"},
        {"source_system": "here"},
        {"tag": ["y", "x"]},
        {"correlation_id": task["correlation_id"]},
        {"created_after": task["created_at"]},
    ]
    misses = [
        {"namespace": "other"},
        {"status": "error"},
        {"name": "named"},
        {"version": "2.0.0"},
        {"source_system": "there"},
        {"tag": ["x", "z"]},
        {"correlation_id": "0195c8f0-1d2e-7000-8000-00000000ffff"},
        {"created_before": task["created_at"]},
    ]

    for filters, expected in [(each, [task["task_uuid"]]) for each in fits] + [(each, []) for each in misses]:
        found = await client.get("/v1/tasks", params={**base, **filters})
        assert [each["task_uuid"] for each in found.json()["tasks"]] == expected, filters


async def test_details_hold_results_errors_and_the_whole_history(client: httpx.AsyncClient) -> None:
    task = await created(client, order(50), wait="20s")
    failed = await created(client, order(-50), wait="20s")

    details = decode(TaskDetails, (await client.get(f"/v1/tasks/{task['task_uuid']}/details")).json())
    assert [(step.name, step.result) for step in details.steps] == [
        ("check", {"amount": 50}),
        ("charge", {"charged": True}),
    ]
    states = [each.to_state for each in details.state_transitions]
    assert (details.state_transitions[0].from_state, states[0], states[1]) == (None, "pending", "initializing")
    assert states[-1] == "complete"
    assert {each.step for each in details.step_transitions} == {"check", "charge"}
    of_failed = (await client.get(f"/v1/tasks/{failed['task_uuid']}/details")).json()
    assert of_failed["task"]["status"] == "error"
    assert of_failed["steps"][0]["error"]["code"] == "NEGATIVE"


async def test_the_context_is_what_the_task_was_given(client: httpx.AsyncClient) -> None:
    task = await created(client, order(60), wait="20s")

    found = decode(TaskContext, (await client.get(f"/v1/tasks/{task['task_uuid']}/context")).json())

    assert found.context == {"amount": 60}
    assert (found.execution_status, found.completion_percentage) == ("all_complete", "100.00")


@pytest.mark.parametrize("amount", [2**70, -(2**64), 10**300])
async def test_numbers_beyond_64_bits_come_back_as_they_are_wherever_the_task_is_shown(
    client: httpx.AsyncClient, amount: int
) -> None:
    task = await created(client, order(amount, tags=["large"]), wait="20s")
    url = f"/v1/tasks/{task['task_uuid']}"

    assert task["context"]["amount"] == (await client.get(f"{url}/context")).json()["context"]["amount"] == amount
    shown = [each["context"]["amount"] for each in (await client.get("/v1/tasks?tag=large")).json()["tasks"]]
    assert amount in shown
    for rest in ("", "/workflow_steps", "/details", "/explain"):
        assert (await client.get(url + rest)).status_code == 200
    if amount > 0:
        assert (await client.get(f"{url}/workflow_steps")).json()[0]["results"] == {"amount": amount}


async def test_idempotency_key_of_the_header_counts_as_that_of_the_body(client: httpx.AsyncClient) -> None:
    header, path = {"Idempotency-Key": "order-4711"}, "/v1/tasks"
    task = (await client.post(path, json=order(4711), headers=header)).json()

    again = await client.post(path, json=order(4711, idempotency_key="order-4711", on_duplicate="return_existing"))
    other = await client.post(path, json=order(12, on_duplicate="return_existing"), headers=header)
    two_keys = await client.post(path, json=order(4711, idempotency_key="another"), headers=header)

    assert (again.status_code, again.json()["task_uuid"]) == (200, task["task_uuid"])
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert other.json()["errors"] == [{"pointer": "/context/amount", "message": "differs from the existing task"}]
    assert task["task_uuid"] not in other.text
    for lists in ("/v1/tasks", "/v1/listings/tasks"):
        answer = await client.get(lists, params={"idempotency_key": "order-4711"})
        found = answer.json()["tasks"] if lists == "/v1/tasks" else answer.json()
        assert [each["task_uuid"] for each in found] == [task["task_uuid"]]
        elsewhere = {"idempotency_key": "order-4711", "namespace": "nowhere"}
        assert task["task_uuid"] not in (await client.get(lists, params=elsewhere)).text
    assert two_keys.status_code == 400
    assert "Idempotency-Key" in two_keys.json()["detail"]


@pytest.mark.parametrize("start", [{"delay": "2h"}, {"run_at": "2099-01-31T18:00:00+01:00"}])
async def test_a_task_for_later_is_created_listed_and_cancelled(
    client: httpx.AsyncClient, start: dict[str, str]
) -> None:
    task = await created(client, order(1) | start | {"idempotency_key": str(start)})

    assert (task["status"], task["ready_steps"]) == ("waiting_for_dependencies", 0)
    assert task["run_at"] == task["waits_until"] is not None
    (listed, *_) = (await client.get("/v1/tasks")).json()["tasks"]
    assert (listed["run_at"], listed["waits_until"]) == (task["run_at"], task["run_at"])
    cancelled = (await client.delete(f"/v1/tasks/{task['task_uuid']}")).json()
    assert (cancelled["status"], cancelled["waits_until"]) == ("cancelled", None)


@pytest.mark.parametrize("deadline", ["2h", "2099-01-31T18:00:00+01:00"])
async def test_a_task_has_a_deadline(client: httpx.AsyncClient, deadline: str) -> None:
    task = await created(client, order(1) | {"deadline": deadline, "delay": "1h", "idempotency_key": deadline})

    ends = datetime.fromisoformat(task["deadline_at"])
    begins = datetime.fromisoformat(task["run_at"])
    assert ends == (begins + timedelta(hours=2) if deadline == "2h" else datetime.fromisoformat(deadline))


@pytest.mark.parametrize(
    ("start", "field"),
    [
        ({"delay": 300}, "delay"),
        ({"delay": "300"}, "delay"),
        ({"delay": "-5m"}, "delay"),
        ({"run_at": "2099-01-31T18:00:00"}, "run_at"),
        ({"run_at": 4070908800}, "run_at"),
        ({"run_at": "2099-01-31T18:00:00Z", "delay": "5m"}, "run_at"),
        ({"deadline": "2099-01-31T18:00:00"}, "deadline"),
        ({"deadline": "soon"}, "deadline"),
        ({"deadline": 3600}, "deadline"),
    ],
)
async def test_what_is_no_start_of_a_task_is_refused(client: httpx.AsyncClient, start: Any, field: str) -> None:
    answer = await client.post("/v1/tasks", json=order(1) | start)

    assert answer.status_code == 400
    assert field in answer.text
