"""Whatever is wrong with a request, the answer says so in both forms, and nothing of the database."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tasker
from tasker.errors import DatabaseError, Overloaded, TaskNotFound
from tasker.server.application import Options, application
from tasker.server.envelope import RequestLimits
from tasker.server.shapes.problems import Problem
from tests.integration.api.program import order

UNKNOWN = "0195c8f0-1d2e-7000-8000-000000000000"
JSON = {"content-type": "application/json"}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
BODIES: dict[str, dict[str, Any]] = {
    "/v1/tasks": {"namespace": "shop", "name": "nothing", "context": {"amount": 1}, "tags": ["a"], "priority": 1},
    "/v1/tasks/batch": {"tasks": [{"namespace": "shop", "name": "nothing"}, {"name": "nothing"}]},
    "/v1/templates": {"yaml": "name: a\nversion: 1.0.0\nsteps: []\n", "validate_only": True},
    "/v1/dlq": {"task_uuid": UNKNOWN, "notes": "look"},
    "/v1/dlq/replays": {"namespace": "shop", "dry_run": True, "rate": 1},
    f"/v1/tasks/{UNKNOWN}/retry": {"reason": "again"},
    f"/v1/tasks/{UNKNOWN}/rerun": {"from_step": "a"},
}
"""What nothing comes of."""


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[str, bytes]:
    """A path, and a body for it in which something is changed, cut or added."""
    path = draw(st.sampled_from(sorted(BODIES)))
    body = dict(BODIES[path])
    if draw(st.booleans()):
        return path, orjson.dumps({**body, draw(st.sampled_from(sorted(body))): draw(ANY_JSON)})
    text, at = orjson.dumps(body), draw(st.integers(0, 40))
    return path, text[:at] + draw(st.binary(max_size=4)) + text[at + draw(st.integers(0, 4)) :]


def problem(answer: httpx.Response, status: int, code: str, kind: str | None = None) -> Problem:
    """The answer, which is a problem in both forms."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = Problem.model_validate(answer.json())
    assert (found.status, found.error.code) == (status, code)
    assert found.error.message == found.detail
    assert found.request_id == answer.headers["x-request-id"]
    assert kind in (None, found.code)
    return found


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "kind"),
    [
        ("GET", "/v1/nothing", 404, "NOT_FOUND", "not_found"),
        ("PUT", "/v1/tasks", 405, "BAD_REQUEST", None),
        ("GET", "/v1/tasks/nonsense", 400, "BAD_REQUEST", "usage_error"),
        ("GET", f"/v1/tasks/{UNKNOWN}", 404, "NOT_FOUND", "task_not_found"),
        ("GET", f"/v1/tasks/{UNKNOWN}/details", 404, "NOT_FOUND", "task_not_found"),
        ("GET", f"/v1/tasks/{UNKNOWN}?wait=1s", 404, "NOT_FOUND", "task_not_found"),
        ("DELETE", f"/v1/tasks/{UNKNOWN}", 404, "NOT_FOUND", "task_not_found"),
        ("GET", "/v1/tasks?per_page=0", 400, "BAD_REQUEST", "malformed_request"),
        ("GET", "/v1/tasks?per_page=501", 400, "BAD_REQUEST", "malformed_request"),
        ("GET", "/v1/tasks?cursor=nonsense", 400, "BAD_REQUEST", "usage_error"),
        ("GET", "/v1/tasks?namespace=%00", 400, "BAD_REQUEST", "malformed_request"),
        ("GET", "/v1/tasks/a%00b", 400, "BAD_REQUEST", "malformed_request"),
        ("GET", "/v1/tasks?correlation_id=x", 400, "BAD_REQUEST", "malformed_request"),
    ],
)
async def test_a_wrong_request_is_a_problem_with_a_stable_code(
    client: httpx.AsyncClient, method: str, path: str, status: int, code: str, kind: str | None
) -> None:
    problem(await client.request(method, path), status, code, kind)


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        (b"{", ""),
        (b"[]", ""),
        (b'{"name": "a", "template_name": "b"}', ""),
        (b'{"name": "a", "context": [1]}', ""),
        (b'{"name": "a", "nonsense": 1}', "/nonsense"),
        (b'{"name": 5}', "/name"),
        (b'{"name": "a\\u0000"}', "/name"),
        (b'{"name": "a", "tags": ["\\ud800"]}', "/tags/0"),
        (b'{"name": "a", "priority": 1e99}', "/priority"),
        (b'{"name": "a", "options": {"x": 1}}', "/options"),
        (b'{"name": "a", "correlation_id": "x"}', "/correlation_id"),
        (b'{"name": "a", "priority": 1, "name": "b"}', "/name"),
        (b'{"name": "a", "context": {"rows": [{}, {"x/y": 1, "x/y": 1}]}}', "/context/rows/1/x~1y"),
        (b'{"name": {"a": 1, "a": 2}, "name": "b"}', "/name"),
    ],
)
async def test_a_malformed_body_is_refused_with_the_place(
    client: httpx.AsyncClient, content: bytes, pointer: str
) -> None:
    found = problem(
        await client.post("/v1/tasks", content=content, headers=JSON), 400, "BAD_REQUEST", "malformed_request"
    )

    assert found.errors
    assert found.errors[0].pointer == pointer  # type: ignore[union-attr]


async def test_repeated_key_is_named_on_every_route_with_a_body(client: httpx.AsyncClient) -> None:
    for path in BODIES:
        content = orjson.dumps(BODIES[path])
        content = content[:-1] + b"," + content[1:]
        found = problem(await client.post(path, content=content, headers=JSON), 400, "BAD_REQUEST", "malformed_request")
        assert found.detail == f"/{next(iter(BODIES[path]))}: is given twice in one object"


async def test_method_that_a_path_lacks_is_answered_with_all_that_it_has(client: httpx.AsyncClient) -> None:
    task = f"/v1/tasks/{UNKNOWN}"
    paths = {"/v1/tasks": "GET, HEAD, POST", task: "DELETE, GET, HEAD", "/v1/dlq": "GET, HEAD, POST"}
    for path, methods in paths.items():
        answer = await client.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)


async def test_request_with_two_hosts_or_a_compressed_body_is_refused(client: httpx.AsyncClient) -> None:
    hosts = [("Host", "tasker"), ("Host", "example.com")]
    assert "Host" in problem(await client.get("/live", headers=hosts), 400, "BAD_REQUEST", "malformed_request").detail
    zipped = {**JSON, "content-encoding": "gzip"}
    answer = await client.post("/v1/tasks", content=gzip.compress(b"{}"), headers=zipped)
    assert "gzip" in problem(answer, 415, "BAD_REQUEST", "unsupported_media_type").detail
    plain = await client.post("/v1/templates", json=BODIES["/v1/templates"], headers={"content-encoding": "identity"})
    assert plain.status_code == 422


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=spoiled())
async def test_whatever_a_body_is_the_server_has_no_fault_of_its_own(
    client: httpx.AsyncClient, sent: tuple[str, bytes]
) -> None:
    path, content = sent

    answer = await client.post(path, content=content, headers=JSON)

    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        found = Problem.model_validate(answer.json())
        assert (found.status, found.error.message) == (answer.status_code, found.detail)


async def test_input_that_does_not_fit_is_told_by_json_pointers(client: httpx.AsyncClient) -> None:
    body = order(1, context={"lines": [{"sku": "a"}, {}]})

    found = problem(await client.post("/v1/tasks", json=body), 422, "BAD_REQUEST", "input_invalid")

    assert [each.pointer for each in found.errors or []] == ["/context/amount", "/context/lines/1/sku"]  # type: ignore[union-attr]


@pytest.mark.parametrize("context", ['{"amount": 1, "a": NaN}', '{"amount": 1, "a": "\\u0000"}'])
async def test_input_that_cannot_be_stored_is_refused_with_the_place(client: httpx.AsyncClient, context: str) -> None:
    content = f'{{"namespace": "shop", "name": "orders", "context": {context}}}'

    found = problem(await client.post("/v1/tasks", content=content, headers=JSON), 422, "BAD_REQUEST", "not_storable")

    assert [each.pointer for each in found.errors or []] == ["/context/a"]  # type: ignore[union-attr]


@pytest.mark.parametrize("levels", [150, 100_000])
async def test_a_body_that_is_too_deep_is_refused(client: httpx.AsyncClient, levels: int) -> None:
    deep = "[" * levels + "]" * levels
    content = f'{{"namespace": "shop", "name": "orders", "context": {{"amount": 1, "deep": {deep}}}}}'

    answer = await client.post("/v1/tasks", content=content, headers=JSON)

    assert answer.status_code in (400, 422), answer.text


async def test_a_missing_key_of_a_named_task_is_told_in_the_published_words(client: httpx.AsyncClient) -> None:
    found = problem(await client.post("/v1/tasks", json={"namespace": "shop", "name": "named"}), 400, "BAD_REQUEST")

    assert found.detail == "idempotency_key is required when named task uses CallerProvided identity strategy"


async def test_a_template_that_nobody_registered_is_a_mistake_in_the_request(client: httpx.AsyncClient) -> None:
    found = problem(
        await client.post("/v1/tasks", json={"namespace": "shop", "name": "x"}),
        400,
        "BAD_REQUEST",
        "template_not_found",
    )

    assert found.hint == "`GET /v1/templates` shows what is"


async def test_a_body_beyond_its_limit_is_not_read(app: tasker.App) -> None:
    small = application(app, Options(limits=RequestLimits(body_bytes=1000)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=small), base_url="http://tasker") as client:
        large = order(1, reason="x" * 2000)
        problem(await client.post("/v1/tasks", json=large), 413, "BAD_REQUEST", "body_too_large")

        async def in_pieces() -> Any:
            for _ in range(3):
                yield b"x" * 900

        problem(await client.post("/v1/tasks", content=in_pieces(), headers=JSON), 413, "BAD_REQUEST", "body_too_large")


async def test_a_body_that_is_not_announced_as_json_is_not_guessed(client: httpx.AsyncClient) -> None:
    problem(await client.post("/v1/tasks", content=b'{"name": "a"}'), 415, "BAD_REQUEST")


async def test_a_request_that_takes_too_long_is_ended(app: tasker.App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_ever(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(app.views, "task", for_ever)
    quick = application(app, Options(limits=RequestLimits(seconds=0.01)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=quick), base_url="http://tasker") as client:
        problem(await client.get(f"/v1/tasks/{UNKNOWN}"), 408, "TIMEOUT", "request_timeout")


async def test_a_request_beyond_those_that_may_wait_is_refused_at_once(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def held(_: str, **__: Any) -> None:
        reading.set()
        await go_on.wait()
        raise TaskNotFound("no such task")

    monkeypatch.setattr(app.views, "task", held)
    narrow = application(app, Options(limits=RequestLimits(requests=1)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=narrow), base_url="http://tasker") as client:
        first = asyncio.create_task(client.get(f"/v1/tasks/{UNKNOWN}"))
        await reading.wait()
        second = problem(await client.get("/live"), 503, "SERVICE_UNAVAILABLE", "too_many_requests")
        go_on.set()
        problem(await first, 404, "NOT_FOUND")
        assert (await client.get("/live")).status_code == 200
    assert second.error.retry_after_seconds == 1


async def test_nothing_of_the_database_or_of_the_code_reaches_a_client(
    app: tasker.App, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: str, **__: Any) -> None:
        raise errors.pop()

    monkeypatch.setattr(app.views, "task", fails)
    errors: list[Exception] = [ValueError("line 5 of secret.py"), DatabaseError('syntax error at "secret"')]
    first, second = [await client.get(f"/v1/tasks/{UNKNOWN}") for _ in range(2)]

    problem(first, 500, "DATABASE_ERROR", "database_error")
    problem(second, 500, "INTERNAL")
    assert "secret" not in first.text + second.text


async def test_refused_work_says_when_to_come_back(
    app: tasker.App, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **__: Any) -> None:
        raise Overloaded("the namespace shop has 9 ready steps, the limit is 5", retry_after=7)

    monkeypatch.setattr(app.admission, "require", full)
    answer = await client.post("/v1/tasks", json=order(99))

    batch = await client.post("/v1/tasks/batch", json={"tasks": [order(1), order(2)]})
    assert (batch.json()["refused"], batch.headers["retry-after"]) == (2, "7")
    partly = await client.post("/v1/tasks/batch", json={"tasks": [order(1), {"name": "nothing"}]})
    assert (partly.json()["refused"], partly.headers.get("retry-after")) == (2, None)
    found = problem(answer, 503, "BACKPRESSURE", "overloaded")
    assert found.error.retry_after_seconds == 7
    assert answer.headers["retry-after"] == "7"


async def test_a_request_keeps_its_identifier_and_every_answer_its_headers(client: httpx.AsyncClient) -> None:
    named = await client.get("/live", headers={"x-request-id": "abc-1"})
    other = await client.get("/live", headers={"x-request-id": "a b\tc"})

    assert named.headers["x-request-id"] == "abc-1"
    assert other.headers["x-request-id"] not in ("", "a b\tc")
    assert named.headers["x-content-type-options"] == "nosniff"
    assert named.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/tasks?statsu=complete", "/query/statsu: unknown parameter; did you mean `status`?"),
        (f"/v1/tasks/{UNKNOWN}?steps=1", "/query/steps: unknown parameter; did you mean `steps_limit`?"),
        ("/v1/workers?xyz=1&stopped=true", "/query/xyz: unknown parameter; expected one of `stopped`"),
        ("/v1/dlq/stats?reason=x", "/query/reason: unknown parameter; this path takes none"),
        ("/v1/tasks?created_after=5", "/query/created_after: expected a date and time such as 2026-01-31T12:00:00Z"),
        ("/v1/operator_actions?since=1.5", "/query/since: expected a date and time such as 2026-01-31T12:00:00Z"),
        ("/v1/tasks?status=complet", "status: unknown state 'complet'"),
        ("/v1/listings/tasks?status=nope", "status: unknown state 'nope'"),
        ("/v1/dlq?resolution_status=nope", "'nope' is not a valid status of a dead letter"),
    ],
)
async def test_unknown_parameters_and_values_are_refused_by_name(
    client: httpx.AsyncClient, path: str, message: str
) -> None:
    answer = await client.get(path)

    assert answer.status_code == 400, answer.text
    assert message in answer.json()["detail"]
