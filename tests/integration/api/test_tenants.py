"""Callers limited to tenants: they create, see and change tasks of their tenants, and reach nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.operations.permissions import Permission
from tasker.server.application import Options, application
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import CONFINES_TENANTS, REQUIRED, ClosedGate
from tasker.server.web.site import add_pages
from tasker.settings.http import ApiKeyEntry, Auth
from tasker.template import compile_text
from tests.integration.api.program import WAITING
from tests.integration.api.test_access import GUARDED, by
from tests.integration.api.test_errors import problem

KEYS = (
    ApiKeyEntry(key="all", permissions=("*",), name="root"),
    ApiKeyEntry(key="acme", permissions=("*",), name="acme", tenants=("acme",)),
    ApiKeyEntry(key="two", permissions=("*",), name="two", tenants=("acme", "other")),
)
WAITS = {"namespace": "nobody", "name": "waiting"}


@pytest_asyncio.fixture(loop_scope="module")
async def guarded(app: tasker.App) -> AsyncIterator[httpx.AsyncClient]:
    await app.plans.register(compile_text(WAITING).plans[0])
    gate = ClosedGate(Authenticator(Auth(enabled=True, api_keys_enabled=True, api_keys=KEYS)))
    transport = httpx.ASGITransport(app=application(app, Options(configuration={}, pages=add_pages), gate))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
        yield client


async def created(client: httpx.AsyncClient, key: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/tasks", json={**WAITS, **more}, headers=by(key))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def test_the_tenant_of_a_key_is_that_of_its_tasks(guarded: httpx.AsyncClient) -> None:
    assert (await created(guarded, "acme"))["tenant"] == "acme"
    assert (await created(guarded, "two", tenant="other"))["tenant"] == "other"
    assert (await created(guarded, "all"))["tenant"] is None
    for key, tenant in (("acme", "other"), ("two", None)):
        refused = await guarded.post("/v1/tasks", json={**WAITS, "tenant": tenant}, headers=by(key))
        problem(refused, 403, "FORBIDDEN")


async def test_lists_and_tasks_of_others_are_not_seen(guarded: httpx.AsyncClient) -> None:
    theirs = await created(guarded, "all", tenant="other")
    nobody = await created(guarded, "all")
    await created(guarded, "all", tenant="acme")
    for path in ("/v1/tasks", "/v1/listings/tasks"):
        rows = (await guarded.get(path, headers=by("acme"))).json()
        rows = rows if isinstance(rows, list) else rows["tasks"]
        own = (await guarded.get("/v1/tasks?tenant=acme", headers=by("all"))).json()["tasks"]
        assert {row["task_uuid"] for row in rows} == {row["task_uuid"] for row in own}
    assert (await guarded.get("/v1/tasks?tenant=other", headers=by("acme"))).json()["tasks"] == []
    found = await guarded.get(f"/v1/listings/identifiers?beginning={theirs['task_uuid']}", headers=by("acme"))
    assert found.json() == []
    for task in (theirs, nobody):
        url = f"/v1/tasks/{task['task_uuid']}"
        problem(await guarded.get(url, headers=by("acme")), 404, "NOT_FOUND")
        problem(await guarded.delete(url, headers=by("acme")), 404, "NOT_FOUND")
    assert (await guarded.get(f"/v1/tasks/{theirs['task_uuid']}", headers=by("two"))).status_code == 200


async def test_own_tasks_are_cancelled_and_a_batch_answers_for_each(guarded: httpx.AsyncClient) -> None:
    own = await created(guarded, "acme")
    assert (await guarded.delete(f"/v1/tasks/{own['task_uuid']}", headers=by("acme"))).status_code == 200
    tasks = [WAITS, {**WAITS, "tenant": "other"}]
    answer = await guarded.post("/v1/tasks/batch", json={"tasks": tasks}, headers=by("acme"))
    assert [each["status"] for each in answer.json()["results"]] == [201, 403]


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: f"{sorted(route.methods)[0]} {route.path}")
async def test_route_without_task_and_tenant_filter_is_refused(guarded: httpx.AsyncClient, route: Any) -> None:
    declared = route.openapi_extra
    if declared.get(CONFINES_TENANTS) or "{uuid}" in route.path or "{task_uuid}" in route.path:
        return
    path = route.path.replace("{namespace}", "nobody").replace("{name}", "waiting").replace("{", "").replace("}", "")
    body = {"json": {}} if route.body_field is not None else {}
    refused = await guarded.request(sorted(route.methods)[0], path, headers=by("acme"), **body)
    problem(refused, 403, "FORBIDDEN")
    assert Permission(declared[REQUIRED])


async def test_the_page_of_tasks_shows_those_of_the_tenant(guarded: httpx.AsyncClient) -> None:
    own, theirs = await created(guarded, "acme"), await created(guarded, "all", tenant="other")
    shown = await guarded.get("/ui/tasks", headers=by("acme"))

    assert shown.status_code == 200
    assert own["task_uuid"] in shown.text
    assert theirs["task_uuid"] not in shown.text
    assert "/ui/dead-letters" not in shown.text


async def test_metrics_count_tenants_under_a_bounded_label(guarded: httpx.AsyncClient) -> None:
    await created(guarded, "acme")
    text = (await guarded.get("/metrics", headers=by("all"))).text
    assert 'tasker_tenant_submissions_total{tenant="other"}' in text


async def test_a_task_is_no_child_of_a_task_that_its_caller_may_not_see(guarded: httpx.AsyncClient) -> None:
    theirs = await created(guarded, "all", tenant="other")
    report = (await guarded.get(f"/v1/tasks/{theirs['task_uuid']}", headers=by("all"))).json()
    parent = {"step_uuid": report["steps"][0]["workflow_step_uuid"], "token": 1}

    unlinked = await created(guarded, "acme", parent=parent)
    again = await guarded.post("/v1/tasks", json={**WAITS, "parent": parent}, headers=by("acme"))

    assert (unlinked["parent_step_uuid"], again.status_code) == (None, 200)
    assert again.json()["task_uuid"] == unlinked["task_uuid"]
    described = {**WAITS, "parent": parent, "tenant": "acme", "key": "x"}
    seen = (await guarded.post("/v1/tasks", json=described, headers=by("two"))).json()
    assert seen["parent_task_uuid"] == theirs["task_uuid"]
    family = (await guarded.get(f"/v1/tasks/{seen['task_uuid']}/children", headers=by("acme"))).json()
    assert (family["parent"], family["depth"]) == (None, 1)
    above = await guarded.get(f"/v1/tasks/{theirs['task_uuid']}/children", headers=by("acme"))
    assert above.status_code == 404
    listed = (await guarded.get(f"/v1/tasks/{theirs['task_uuid']}/children", headers=by("two"))).json()
    assert [child["task_uuid"] for child in listed["children"]] == [seen["task_uuid"]]
