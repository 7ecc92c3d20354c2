"""Who is let in: every route asks for its permission before it reads anything, and callers stay in their namespaces."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio
from fastapi.routing import APIRoute
from prometheus_client.parser import text_string_to_metric_families

import tasker
from tasker.operations.permissions import Permission
from tasker.redaction import REDACTED
from tasker.server.api import configuration as config
from tasker.server.application import SUBJECTS, Options, application
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import OPERATES, REQUIRED, ClosedGate
from tasker.server.auth.tokens import TokenOrder, sign
from tasker.server.auth.verification_keys import generate, private_key
from tasker.settings.http import ApiKeyEntry, Auth
from tasker.template import compile_text
from tests.integration.api.program import CARDS, WAITING, order
from tests.integration.api.test_errors import UNKNOWN, problem
from tests.support.command_line import invoke

ROUTES = [route for module in (*SUBJECTS, config) for route in module.routes.routes if isinstance(route, APIRoute)]
GUARDED = [route for route in ROUTES if REQUIRED in (route.openapi_extra or {})]
CONFINED, ELSEWHERE, SCOPED = "confined-to-the-shop", "confined-to-elsewhere", "scoped-to-the-shop"
KEYS = [
    *(
        ApiKeyEntry(key=f"only {permission}", permissions=(permission,), name=f"only-{permission}")
        for permission in Permission
    ),
    *(
        ApiKeyEntry(key=f"but {permission}", permissions=tuple({*Permission} - {permission}), name="most")
        for permission in Permission
    ),
    *(ApiKeyEntry(key=f"group {p}", permissions=(f"{p.partition(':')[0]}:*",), name="group") for p in Permission),
    ApiKeyEntry(key="everything", permissions=("*",), name="root"),
    ApiKeyEntry(key="nothing", permissions=(), name="nobody"),
    ApiKeyEntry(key=CONFINED, permissions=("*",), name="shopkeeper", namespaces=("shop",)),
    ApiKeyEntry(key=ELSEWHERE, permissions=("*",), name="stranger", namespaces=("elsewhere",)),
    ApiKeyEntry(key=SCOPED, permissions=("tasks:*:shop", "tasks:read:nobody"), name="scoped"),
]
KEPT = "select actor, proof, endpoint, path, request_id, status from tasker.operator_actions"
NOTHING_CONFIGURED: dict[str, Any] = {}


@asynccontextmanager
async def guarding(app: tasker.App) -> AsyncIterator[httpx.AsyncClient]:
    """A server with keys in front of a program."""
    gate = ClosedGate(Authenticator(Auth(enabled=True, api_keys_enabled=True, api_keys=tuple(KEYS))))
    transport = httpx.ASGITransport(app=application(app, Options(configuration=NOTHING_CONFIGURED), gate))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def guarded(app: tasker.App) -> AsyncIterator[httpx.AsyncClient]:
    async with guarding(app) as client:
        yield client


def by(key: str) -> dict[str, str]:
    return {"X-API-Key": key}


async def test_who_is_not_let_through_is_a_warning_without_what_they_showed(
    guarded: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "tasker.api")
    for _ in range(3):
        assert (await guarded.get("/v1/tasks", headers=by("a-key-that-is-secret"))).status_code == 401
    assert (await guarded.get("/v1/tasks", headers=by("nothing"))).status_code == 403
    told = [line.getMessage() for line in caplog.records if line.levelname == "WARNING"]
    assert [line.split()[:2] for line in told] == [["credentials_refused", "count=1"], ["permission_denied", "count=1"]]
    assert told[1].endswith("caller='nobody': Missing required permission: tasks:list")
    assert "a-key-that-is-secret" not in caplog.text


async def test_who_is_let_through_is_a_line_for_who_looks_for_it(
    guarded: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tasker.api")
    assert (await guarded.get("/v1/tasks", headers=by("everything"))).status_code == 200
    (line,) = [line for line in caplog.records if line.getMessage().startswith("caller_known")]
    assert line.getMessage() == "caller_known caller='root' known_by=api_key request='GET /v1/tasks'"
    assert line.levelname == "DEBUG"


async def test_every_route_answers_with_its_permission_and_with_no_other(guarded: httpx.AsyncClient) -> None:
    assert len(GUARDED) > 25
    for route in GUARDED:
        permission = (route.openapi_extra or {})[REQUIRED]
        for method in route.methods:
            path = route.path
            for name in ("uuid", "task_uuid", "step_uuid", "dlq_entry_uuid"):
                path = path.replace(f"{{{name}}}", UNKNOWN)

            async def send(key: str | None, method: str = method, path: str = path) -> httpx.Response:
                # what is no JSON is not looked at before the caller is
                return await guarded.request(method, path, headers=by(key) if key else {}, content=b"{")

            refused = problem(await send(None), 401, "UNAUTHORIZED", "unauthorized")
            assert refused.detail == "Missing authentication credentials"
            problem(await send("unknown to the server"), 401, "UNAUTHORIZED", "unauthorized")
            for wrong in ("nothing", f"but {permission}"):
                found = problem(await send(wrong), 403, "FORBIDDEN", "forbidden")
                assert found.detail == f"Missing required permission: {permission}"
            for right in (f"only {permission}", f"group {permission}", "everything"):
                answer = await send(right)
                assert answer.status_code not in (401, 403), f"{method} {path}: {answer.text}"


async def test_what_is_open_to_everybody_needs_no_key(own_app: tasker.App) -> None:
    async with guarding(own_app) as guarded:
        for path in ("/health", "/live", "/ready", "/openapi.json", "/docs"):
            assert (await guarded.get(path)).status_code == 200
        assert (await guarded.get("/v1/tasks")).headers["www-authenticate"] == "Bearer"
        await guarded.get("/v1/tasks", headers=by("nothing"))
        counted = (await guarded.get("/metrics")).text
        assert 'tasker_auth_failures_total{reason="missing"} 1\n' in counted
        assert 'tasker_auth_requests_total{method="none",result="failure"} 1\n' in counted
        assert 'tasker_auth_requests_total{method="api_key",result="success"} 1\n' in counted
        assert 'tasker_permission_denials_total{permission="tasks:list"} 1\n' in counted


async def test_a_caller_sees_and_changes_only_what_is_in_their_namespaces(
    app: tasker.App, guarded: httpx.AsyncClient
) -> None:
    (waiting,) = compile_text(WAITING).plans
    await app.plans.register(waiting, force=True)
    theirs = {"namespace": "nobody", "name": "waiting"}
    ours = (await guarded.post("/v1/tasks?wait=20s", json=order(7), headers=by(CONFINED))).json()["task_uuid"]
    other = (await guarded.post("/v1/tasks", json=theirs, headers=by("everything"))).json()["task_uuid"]

    problem(await guarded.post("/v1/tasks", json=theirs, headers=by(CONFINED)), 403, "FORBIDDEN")
    batch = {"tasks": [theirs, order(8), theirs]}
    answers = (await guarded.post("/v1/tasks/batch", json=batch, headers=by(CONFINED))).json()
    assert [each["status"] for each in answers["results"]] == [403, 201, 403]

    listed = (await guarded.get("/v1/tasks", headers=by(CONFINED))).json()
    assert {task["namespace"] for task in listed["tasks"]} == {"shop"}
    assert listed["pagination"]["total_count"] == len(listed["tasks"])
    assert (await guarded.get("/v1/tasks?namespace=nobody", headers=by(CONFINED))).json()["tasks"] == []
    assert (await guarded.get("/v1/tasks", headers=by(ELSEWHERE))).json()["tasks"] == []
    assert "shopkeeper" in {task["initiator"] for task in listed["tasks"]}
    briefly = (await guarded.get("/v1/listings/tasks", headers=by(CONFINED))).json()
    assert {task["namespace"] for task in briefly} == {"shop"}
    for task, beginning in ((ours, [ours]), (other, [])):
        found = await guarded.get("/v1/listings/identifiers", params={"beginning": task}, headers=by(CONFINED))
        assert found.json() == beginning

    for path in (
        "",
        "/context",
        "/details",
        "/workflow_steps",
        "/events",
        "/explain",
        "/report",
        "/history",
        "/template",
    ):
        assert (await guarded.get(f"/v1/tasks/{ours}{path}", headers=by(CONFINED))).status_code == 200
        hidden = problem(await guarded.get(f"/v1/tasks/{other}{path}", headers=by(CONFINED)), 404, "NOT_FOUND")
        unknown = problem(await guarded.get(f"/v1/tasks/{UNKNOWN}{path}", headers=by(CONFINED)), 404, "NOT_FOUND")
        assert (hidden.detail.replace(other, ""), hidden.hint) == (unknown.detail.replace(UNKNOWN, ""), unknown.hint)
    problem(await guarded.delete(f"/v1/tasks/{other}", headers=by(CONFINED)), 404, "NOT_FOUND")
    paused = await guarded.post("/v1/pauses", json={"task": other, "reason": "x"}, headers=by(CONFINED))
    problem(paused, 400, "BAD_REQUEST", "task_not_found")
    problem(await guarded.delete("/v1/pauses?namespace=nobody", headers=by(CONFINED)), 403, "FORBIDDEN")
    problem(await guarded.delete("/v1/pauses?queue=orchestration_step_results", headers=by(CONFINED)), 403, "FORBIDDEN")

    opened = {each: await app.dead_letters.open(each, actor="ada") for each in (ours, other)}
    hers, entry = opened[ours].dlq_entry_uuid, opened[other].dlq_entry_uuid
    assert other in (await guarded.get("/v1/dlq", headers=by("everything"))).text
    for path in ("/v1/dlq", "/v1/dlq?namespace=nobody", "/v1/dlq/investigation-queue", "/v1/dlq/staleness"):
        assert other not in (await guarded.get(path, headers=by(CONFINED))).text
    assert (await guarded.get("/v1/dlq/groups", headers=by(CONFINED))).status_code == 200
    assert ours in (await guarded.get("/v1/dlq", headers=by(CONFINED))).text
    notes = {"resolution_notes": "seen"}
    assert (await guarded.patch(f"/v1/dlq/entry/{hers}", json=notes, headers=by(CONFINED))).status_code == 200
    problem(await guarded.patch(f"/v1/dlq/entry/{entry}", json=notes, headers=by(CONFINED)), 404, "NOT_FOUND")
    problem(await guarded.get(f"/v1/dlq/entry/{entry}", headers=by(CONFINED)), 404, "NOT_FOUND")
    problem(await guarded.post(f"/v1/dlq/entry/{entry}/retry", json={}, headers=by(CONFINED)), 404, "NOT_FOUND")
    problem(await guarded.get(f"/v1/dlq/task/{other}", headers=by(CONFINED)), 404, "NOT_FOUND")
    opening = await guarded.post("/v1/dlq", json={"task_uuid": other}, headers=by(CONFINED))
    problem(opening, 400, "BAD_REQUEST", "task_not_found")

    templates = (await guarded.get("/v1/templates", headers=by(CONFINED))).json()
    assert [each["name"] for each in templates["namespaces"]] == ["shop"]
    problem(await guarded.get("/v1/templates/nobody/waiting/1.0.0", headers=by(CONFINED)), 403, "FORBIDDEN")
    problem(await guarded.post("/v1/templates", json={"yaml": WAITING}, headers=by(CONFINED)), 403, "FORBIDDEN")


async def test_what_is_not_of_one_namespace_is_not_for_those_who_are_confined(guarded: httpx.AsyncClient) -> None:
    for path in (
        "/v1/workers",
        "/v1/queues",
        "/v1/limits",
        "/v1/pauses",
        "/v1/dlq/stats",
        "/v1/analytics/performance",
        "/config",
    ):
        problem(await guarded.get(path, headers=by(CONFINED)), 403, "FORBIDDEN")


async def test_who_lets_a_dead_letter_go_on_must_be_allowed_to_close_it(
    app: tasker.App, guarded: httpx.AsyncClient
) -> None:
    task = (await guarded.post("/v1/tasks", json=order(17), headers=by("everything"))).json()["task_uuid"]
    url = f"/v1/dlq/entry/{(await app.dead_letters.open(task, actor='ada')).dlq_entry_uuid}/retry"
    refused = problem(await guarded.post(url, json={}, headers=by("only steps:resolve")), 403, "FORBIDDEN")
    assert "dlq:update" in refused.detail
    assert (await guarded.post(url, json={}, headers=by("everything"))).status_code == 200


async def test_a_permission_may_count_in_one_namespace_alone(app: tasker.App, guarded: httpx.AsyncClient) -> None:
    (waiting,) = compile_text(WAITING).plans
    await app.plans.register(waiting, force=True)
    theirs = {"namespace": "nobody", "name": "waiting"}
    other = (await guarded.post("/v1/tasks", json=theirs, headers=by("everything"))).json()["task_uuid"]

    assert (await guarded.get(f"/v1/tasks/{other}", headers=by(SCOPED))).status_code == 200
    problem(await guarded.delete(f"/v1/tasks/{other}", headers=by(SCOPED)), 404, "NOT_FOUND")
    problem(await guarded.post("/v1/tasks", json=theirs, headers=by(SCOPED)), 403, "FORBIDDEN")
    assert (await guarded.post("/v1/tasks", json=order(9), headers=by(SCOPED))).status_code in (201, 409)


async def test_who_wants_the_task_that_exists_must_be_allowed_to_read_it(guarded: httpx.AsyncClient) -> None:
    again = order(11, on_duplicate="return_existing")
    problem(await guarded.post("/v1/tasks", json=again, headers=by("only tasks:create")), 403, "FORBIDDEN")
    assert (await guarded.post("/v1/tasks", json=again, headers=by("everything"))).status_code == 201


async def test_what_is_done_by_hand_is_kept_with_who_asked_for_it(
    app: tasker.App, guarded: httpx.AsyncClient, module_database_url: str
) -> None:
    task = (await guarded.post("/v1/tasks?wait=20s", json=order(13), headers=by("everything"))).json()["task_uuid"]
    named = {"X-Request-ID": "call-1", **by(CONFINED)}
    assert (await guarded.delete(f"/v1/tasks/{task}", headers=named)).status_code == 400
    assert (await guarded.post("/v1/pauses", headers=by("but tasks:read"), content=b"{")).status_code == 415
    assert (await guarded.post("/v1/pauses", headers=by("nothing"), json={})).status_code == 403

    with psycopg.connect(module_database_url) as connection:
        rows = connection.execute(KEPT).fetchall()

    one = ("shopkeeper", "api_key", "DELETE /v1/tasks/{uuid}", f"/v1/tasks/{task}", "call-1", 400)
    assert one in rows
    assert ("most", "api_key", "POST /v1/pauses", "/v1/pauses", 415) in {(*row[:4], row[5]) for row in rows}
    assert "nobody" not in {row[0] for row in rows}

    told = await guarded.get("/v1/operator_actions?actor=shopkeeper&limit=1000", headers=by("everything"))
    actions = told.json()["actions"]
    assert {each["actor"] for each in actions} == {"shopkeeper"}
    assert one in {
        tuple(each[name] for name in KEPT.removeprefix("select ").split(" from ")[0].split(", ")) for each in actions
    }


def test_every_route_that_changes_something_by_hand_is_kept() -> None:
    creating = {"/v1/tasks", "/v1/tasks/batch", "/v1/task-requests", "/v1/events"}
    by_programs = {*creating, "/v1/templates/{namespace}/{name}/{version}/validate", "/v1/templates/plan"}
    changing = [route for route in GUARDED if not route.methods & {"GET"} and route.path not in by_programs]
    assert len(changing) > 5
    assert [route.path for route in changing if not (route.openapi_extra or {}).get(OPERATES)] == []


LIMITED = """\
name: limited
namespace_name: shop
version: 1.0.0
steps:
  - {name: check, handler: shop.check, concurrency: {key: input.order_id, limit: 1}}
"""


async def test_keys_of_limits_are_shown_to_nobody_who_may_not_read_sensitive_values(guarded: httpx.AsyncClient) -> None:
    root = by("everything")
    await guarded.post("/v1/templates", json={"yaml": LIMITED}, headers=root)
    asked = {"namespace": "shop", "name": "limited", "context": {"order_id": 7}}
    await guarded.post("/v1/tasks", json=asked, headers=root)

    for headers, hidden in ((root, False), (by("but data:read_sensitive"), True)):
        limits = (await guarded.get("/v1/limits", headers=headers)).json()["limits"]
        (keys,) = [limit["keys"] for limit in limits if limit["name"] == "step shop/limited/check"]
        assert (keys is None) is hidden


async def test_what_a_schema_marks_as_sensitive_is_shown_to_nobody_who_may_not_read_it(
    app: tasker.App, guarded: httpx.AsyncClient, module_database_url: str
) -> None:
    (cards,) = compile_text(CARDS).plans
    await app.plans.register(cards)
    card = {"card": {"number": "4111-secret", "brand": "visa"}, "shop": "corner"}
    asked = {"namespace": "shop", "name": "cards", "context": card}
    blind = by("but data:read_sensitive")
    created = await guarded.post("/v1/tasks?wait=20s", json=asked, headers=blind)
    task = created.json()["task_uuid"]
    (token, _) = (await guarded.get(f"/v1/tasks/{task}/workflow_steps", headers=blind)).json()
    assert token["results"] == {"pin": REDACTED, "brand": "visa"}
    assert created.json()["context"] == {"card": {"number": REDACTED, "brand": "visa"}, "shop": "corner"}

    revealing, hidden = set(), ("4111-secret", "987654321")
    for route in GUARDED:
        if not {"uuid", "task_uuid"} & set(route.param_convertors) or "GET" not in route.methods:
            continue
        path = (
            route.path.replace("{uuid}", task).replace("{task_uuid}", task).replace("{step_uuid}", token["step_uuid"])
        )
        answer = await guarded.get(path, headers=blind)
        assert not [secret for secret in hidden if secret in answer.text], path
        shown = await guarded.get(path, headers=by("everything"))
        revealing |= {route.path.rpartition("/")[2]} if any(secret in shown.text for secret in hidden) else set()
    assert revealing >= {"{uuid}", "context", "details", "report", "workflow_steps", "{step_uuid}", "audit"}

    again = await guarded.post(f"/v1/tasks/{task}/rerun", json={"set": {"shop": "mall"}}, headers=blind)
    whole = await guarded.get(f"{again.headers['location']}/context", headers=by("everything"))
    assert whole.json()["context"] == {**card, "shop": "mall"}, "what a caller may not see is not lost by a rerun"

    listed = await guarded.get("/v1/tasks", headers=blind)
    assert "corner" in listed.text
    assert "4111-secret" not in listed.text
    assert "4111-secret" in (await guarded.get("/v1/tasks", headers=by("everything"))).text
    assert "4111-secret" in (await guarded.get("/v1/tasks", headers=by(CONFINED))).text
    shows = (["show", task, "--all"], ["show", task, "--format", "json"], ["steps", task], ["audit", task])
    for command in (*shows, ["history", task]):
        printed = await asyncio.to_thread(invoke, "task", *command, database=module_database_url)
        assert printed.exit_code == 0, printed.stderr
        assert not [secret for secret in hidden if secret in printed.output], command
    printed = await asyncio.to_thread(invoke, "task", "show", task, "--show-sensitive", database=module_database_url)
    assert "4111-secret" in printed.output
    for limit in (await guarded.get("/v1/limits", headers=blind)).json()["limits"]:
        assert limit["keys"] is None
    for path in ("/v1/dlq", "/v1/dlq/groups", "/v1/dlq/investigation-queue"):
        assert "4111-secret" not in (await guarded.get(path, headers=blind)).text


async def test_operators_act_under_their_own_name_whatever_the_request_says(guarded: httpx.AsyncClient) -> None:
    pause = {"namespace": "shop", "reason": "x", "actor": "somebody else"}
    await guarded.post("/v1/pauses", json=pause, headers=by(CONFINED))
    (found,) = (await guarded.get("/v1/pauses", headers=by("everything"))).json()["pauses"]
    await guarded.delete("/v1/pauses?namespace=shop&actor=x", headers=by(CONFINED))
    log = (await guarded.get("/v1/pauses", headers=by("everything"))).json()["log"]

    assert found["actor"] == "shopkeeper"
    assert log[0]["actor"] == "shopkeeper"


async def test_callers_are_counted_by_what_they_have_shown_and_why_they_were_refused(app: tasker.App) -> None:
    private, public = generate(2048)
    settings = Auth(enabled=True, jwt_public_key=public, strict_validation=True)
    key, order_of = private_key(private, "key"), TokenOrder("ada", ["tasks:*"], hours=1)
    shown = {
        "known": f"Bearer {sign(order_of, key, settings)}",
        "expired": f"Bearer {sign(replace(order_of, hours=-1), key, settings)}",
        "invalid_token": "Bearer nonsense",
        "unknown_permissions": f"Bearer {sign(replace(order_of, permissions=['tasks:fly']), key, settings)}",
        "malformed": "Basic YTpi",
    }
    keys = Auth(enabled=True, api_key="k" * 32)
    program = application(app, Options(configuration=NOTHING_CONFIGURED), gate := ClosedGate(Authenticator(settings)))
    transport = httpx.ASGITransport(app=program)
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
        before = samples((await client.get("/metrics")).text)
        for authorization in shown.values():
            await client.get("/v1/tasks", headers={"Authorization": authorization})
        gate.change(Authenticator(keys))
        await client.get("/v1/tasks", headers={"Authorization": shown["known"]})
        await client.get("/v1/tasks", headers=by("another"))
        found = samples((await client.get("/metrics")).text) - before

    failed = {reason: found[f"tasker_auth_failures_total/{reason}"] for reason in [*shown, "not_taken", "unknown_key"]}
    assert failed == {**dict.fromkeys(failed, 1), "known": 0}
    assert found["tasker_auth_requests_total/jwt/success"] == 1
    assert found["tasker_auth_requests_total/jwt/failure"] == 3
    assert found["tasker_auth_requests_total/none/failure"] == 2
    assert found["tasker_auth_requests_total/api_key/failure"] == 1
    assert found["tasker_auth_jwt_verification_duration_milliseconds_count/success"] == 1
    assert found["tasker_auth_jwt_verification_duration_milliseconds_count/failure"] == 3


def samples(text: str) -> Counter[str]:
    """The samples of a scrape by name and values of labels."""
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return Counter({"/".join([each.name, *each.labels.values()]): each.value for each in found})  # type: ignore[dict-item]
