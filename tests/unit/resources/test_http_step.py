"""`tasker.http` against a real server: what is sent, what comes back, which failures are tried again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tasker.errors import ConfigurationError, TaskerError
from tasker.handlers.http.step import HttpRequest
from tasker.known_secrets import KNOWN, KnownSecrets
from tasker.resources.http import HttpResource, make_http
from tasker.resources.tables import HTTP_KEYS, table_problems
from tasker.secrets import Secret
from tasker.testing.contexts import step_context
from tests.support.scripted_server import Reply, reply, scripted_server

LOCAL = {"private_networks": ["127.0.0.0/8"]}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KnownSecrets.__slots__:
        monkeypatch.setattr(KNOWN, name, getattr(KnownSecrets(), name))


async def sent(
    inputs: dict[str, Any], *replies: Reply, base: str = "", **settings: Any
) -> tuple[dict[str, Any], list[str]]:
    """The result, and the requests that the server got."""
    async with scripted_server(replies or [reply(200, {"ok": True})]) as server:
        resource = make_http({"base_url": server.url + base, **LOCAL, **settings})
        values = {key: _there(value, server.url) for key, value in inputs.items()}
        context = step_context({"resource": "crm", **values}, resources={"crm": resource})
        try:
            result = await asyncio.to_thread(HttpRequest().call, context)
        finally:
            resource.close()
        return result.result or {}, server.heard


def _there(value: Any, url: str) -> Any:
    return value.replace("SERVER", url) if isinstance(value, str) else value


async def failure(inputs: dict[str, Any], *replies: Reply, **options: Any) -> TaskerError:
    with pytest.raises(TaskerError) as refused:
        await sent(inputs, *replies, **options)
    return refused.value


async def test_a_request_has_what_its_inputs_and_its_resource_say() -> None:
    inputs = {"method": "POST", "path": "/orders", "query": {"a": "x&y", "n": 1}, "headers": {"X-A": "b"}, "json": [1]}
    options = {"headers": {"X-Team": "billing"}, "bearer": Secret("token-4711")}
    result, (request,) = await sent(inputs, reply(201, {"id": 7}, etag="v1"), base="/api/v1/", **options)
    assert result == {"status": 201, "headers": {"content-type": "application/json", "etag": "v1"}, "json": {"id": 7}}
    head, _, body = request.partition("\r\n\r\n")
    assert head.startswith("POST /api/v1/orders?a=x%26y&n=1 HTTP/1.1")
    lines = {line.lower() for line in head.splitlines()}
    assert {"x-a: b", "x-team: billing", "authorization: bearer token-4711"} <= lines
    key = "idempotency-key: tasker:0190b0c0-0000-7000-8000-000000000001:step"
    assert (key in lines, body) == (True, "[1]")


async def test_a_header_of_the_inputs_takes_the_place_of_the_one_that_the_step_adds() -> None:
    headers = {"idempotency-key": "mine", "content-type": "text/csv"}
    _, (request,) = await sent({"method": "POST", "text": "a,b", "headers": headers})
    lines = [line.lower() for line in request.partition("\r\n\r\n")[0].splitlines()]
    assert [line for line in lines if "idempotency" in line or "content-type" in line] == [
        "idempotency-key: mine",
        "content-type: text/csv",
    ]


@pytest.mark.parametrize(("timeout", "most"), [(10.0, 9.0), (1.0, 0.9), (None, None)])
def test_a_request_ends_before_its_step_is_stopped(timeout: float | None, most: float | None) -> None:
    limits: list[float | None] = []

    class Service:
        kind = "http"

        def send(self, *_: Any, seconds: float | None, **__: Any) -> httpx.Response:
            limits.append(seconds)
            return httpx.Response(204)

    context = step_context({"resource": "crm"}, resources={"crm": Service()})
    assert context._step is not None
    context._step = replace(context._step, timeout_seconds=timeout)
    HttpRequest().call(context)
    (limit,) = limits
    assert limit is None if most is None else limit is not None and 0 < limit <= most


async def test_basic_authentication_and_text() -> None:
    inputs = {"method": "PUT", "text": "größe", "response": "none"}
    basic = {"user": "a", "password": Secret("b")}
    result, (request,) = await sent(inputs, reply(200, "done", "text/plain"), basic=basic)
    assert "authorization: Basic YTpi" in request.replace("Authorization", "authorization")
    assert "text/plain; charset=utf-8" in request
    assert result == {"status": 200, "headers": {"content-type": "text/plain"}}
    assert (await sent({}, reply(200, "done", "text/plain")))[0]["text"] == "done"
    assert (await sent({"expect": [404]}, reply(404, {"a": 1})))[0]["status"] == 404


CUT = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"
CLASSES = [
    ("GET", reply(503, "", retry_after="7"), True, "HTTP_503"),
    ("POST", reply(503, ""), True, "HTTP_503"),
    ("POST", reply(429, ""), True, "HTTP_429"),
    ("POST", reply(408, ""), True, "HTTP_408"),
    ("GET", reply(500, ""), True, "outcome_unknown"),
    ("PUT", reply(502, ""), True, "outcome_unknown"),
    ("POST", reply(500, ""), False, "outcome_unknown"),
    ("PATCH", reply(504, ""), False, "outcome_unknown"),
    ("GET", CUT, True, "outcome_unknown"),
    ("POST", CUT, False, "outcome_unknown"),
    ("POST", None, False, "outcome_unknown"),
    ("GET", reply(404, "no such order"), False, "HTTP_404"),
    ("GET", reply(302, "", location="http://10.0.0.1/"), False, "HTTP_302"),
    ("GET", reply(501, ""), False, "HTTP_501"),
]


@pytest.mark.parametrize(("method", "answer", "retryable", "code"), CLASSES)
async def test_failures_are_tried_again_by_status_and_method(
    method: str, answer: Reply, retryable: bool, code: str
) -> None:
    error = await failure({"method": method}, answer)
    assert (error.retryable, error.error_code) == (retryable, code)
    if code == "HTTP_503" and method == "GET":
        assert error.retry_after == 7


async def test_an_idempotent_post_is_tried_again() -> None:
    assert (await failure({"method": "POST", "idempotent": True}, reply(500, ""))).retryable


async def test_refused_credentials_are_an_authentication_error() -> None:
    error = await failure({}, reply(401, "bad token"))
    assert (error.error_type, error.retryable) == ("authentication_error", False)


async def test_failed_connection_is_retried_and_refused_address_is_not() -> None:
    for networks, retryable, code in ((["127.0.0.0/8"], True, "not_connected"), ([], False, "address_refused")):
        resource = make_http({"base_url": "http://127.0.0.1:9", "private_networks": networks})
        with pytest.raises(TaskerError) as refused:
            HttpRequest().call(step_context({"resource": "crm"}, resources={"crm": resource}))
        assert (refused.value.retryable, refused.value.error_code) == (retryable, code)


OUTSIDE = [
    {"path": "/../admin"},
    {"path": "/a/../../admin"},
    {"path": "/%2e%2e/admin"},
    {"path": "/..%2fadmin"},
    {"path": "/a?b=1"},
    {"path": "/a#b"},
    {"path": "no-slash"},
    {"path": "/http://evil.example/"},
    {"headers": {"Host": "evil.example"}},
    {"headers": {"X-A": "b\r\nX-Evil: 1"}},
    {"headers": {"X-A": "größe"}},
    {"headers": {"Transfer-Encoding": "chunked"}},
    {"method": "CONNECT"},
    {"json": 1, "text": "b"},
]


@pytest.mark.parametrize("inputs", OUTSIDE)
async def test_inputs_that_would_leave_the_resource_send_nothing(inputs: dict[str, Any]) -> None:
    async with scripted_server([reply(200, {})]) as server:
        resource = make_http({"base_url": f"{server.url}/api", **LOCAL})
        context = step_context({"resource": "crm", **inputs}, resources={"crm": resource})
        with pytest.raises(TaskerError) as refused:
            await asyncio.to_thread(HttpRequest().call, context)
        assert (refused.value.retryable, refused.value.error_code) == (False, "invalid_inputs")
        assert server.heard == []
        resource.close()


NASTY = ["//evil.example/x", "/\\evil.example", "/a b\"<>'", "/ü/../x".replace("/../", "/"), "/;a=b", "/@evil.example/"]


@pytest.mark.parametrize("path", NASTY)
async def test_nasty_paths_stay_at_the_server(path: str) -> None:
    _, (request,) = await sent({"path": path}, base="/api")
    assert request.startswith("GET /api/")
    assert "host: 127.0.0.1" in request.lower()


async def test_pages_are_followed_to_the_end() -> None:
    pages = [
        reply(200, {"data": {"rows": [1, 2]}, "next": "/api/orders?page=2"}),
        reply(200, {"data": {"rows": [3]}, "next": "?page=3"}),
        reply(200, {"data": {"rows": []}, "next": None}),
    ]
    wanted = {"items": "data.rows", "next": "next"}
    result, heard = await sent({"path": "/orders", "query": {"page": 1}, "pages": wanted}, *pages, base="/api")
    assert result == {"items": [1, 2, 3], "pages": 3}
    assert [request.split()[1] for request in heard] == [
        "/api/orders?page=1",
        "/api/orders?page=2",
        "/api/orders?page=3",
    ]


@pytest.mark.parametrize(
    ("following", "message"),
    [
        ("http://10.0.0.1/api", "leaves the base URL"),
        ("/admin", "leaves the base URL"),
        (7, "neither a URL nor null"),
        ("/api/orders?page=2", "leads back"),
    ],
)
async def test_a_next_page_that_is_none_ends_in_a_permanent_failure(following: Any, message: str) -> None:
    page = reply(200, {"rows": [1], "next": following})
    wanted = {"items": "rows", "next": "next", "most": 5}
    error = await failure({"path": "/orders", "pages": wanted}, page, base="/api")
    assert message in error.message
    assert not error.retryable


async def test_too_many_pages_and_too_large_a_response_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [reply(200, {"rows": [1], "next": f"/{number}"}) for number in range(5)]
    error = await failure({"pages": {"items": "rows", "next": "next", "most": 3}}, *pages)
    assert error.error_code == "too_many_pages"
    monkeypatch.setattr("tasker.resources.http.LARGEST_BODY", 10)
    assert (await failure({}, reply(200, {"a": "long enough"}))).error_code == "response_too_large"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"base_url": "ftp://x"},
        {"base_url": "crm"},
        {"base_url": "http://"},
        {"base_url": 5},
        {"base_url": "http://x?q=1"},
        {"base_url": "http://a:b@x"},
        {"base_url": "http://x", "baerer": "y"},
    ],
)
def test_a_wrong_table_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        make_http(settings)


async def test_another_kind_of_resource_is_refused() -> None:
    with pytest.raises(TaskerError, match="not of the kind http"):
        HttpRequest().call(step_context({"resource": "crm"}, resources={"crm": object()}))
    assert HttpResource.kind == "http"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("timeout_seconds", "soon", "timeout_seconds: expected a number above 0, got 'soon'"),
        ("timeout_seconds", 0, "timeout_seconds: expected a number above 0, got 0"),
        ("connections", True, "connections: expected a number above 0, got True"),
        ("private_networks", "10.0.0.0/8", "private_networks: expected a list, got '10.0.0.0/8'"),
    ],
)
def test_a_table_with_a_wrong_type_is_refused_with_its_key(key: str, value: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make_http({"base_url": "https://crm.example.com", key: value})
    assert refused.value.message == says
    make_http({"base_url": "https://crm.example.com", "connections": "5", "timeout_seconds": "2.5"}).close()


def test_keys_of_a_table_are_checked_before_a_client_is_made() -> None:
    table = {"kind": "http", "base_ulr": "https://crm.example.com", "bearer": {"secret": "env:CRM_TOKEN"}}
    problems = {problem.path: problem.issue for problem in table_problems({"resources": {"crm": table}})}
    assert problems == {"resources.crm.base_ulr": "Unknown key", "resources.crm": "`base_url` is missing"}
    known = {"kind": "http", **dict.fromkeys(HTTP_KEYS, "x")}
    assert not [*table_problems({"resources": {"crm": known}})]
