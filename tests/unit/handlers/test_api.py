from __future__ import annotations

import asyncio
import inspect
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from tasker.errors import ErrorClassifier, StepExecutionError
from tasker.handlers.claims import Failure
from tasker.handlers.normalize import failure_from_exception, failure_from_result
from tasker.step_handler import ApiHandler, ApiResponse
from tasker.types import StepContext, StepHandlerResult
from tests.unit.handlers.support import context


def echo(request: httpx.Request) -> httpx.Response:
    """Answers with the status in the path and says what it was asked."""
    status = int(request.url.path.rsplit("/", 1)[-1])
    body = {
        "method": request.method,
        "path": request.url.path,
        "query": dict(request.url.params),
        "sent": request.content.decode(),
    }
    return httpx.Response(status, json=body | {"token": request.headers.get("x-token")}, headers={"retry-after": "7"})


class Api(ApiHandler):
    base_url = "https://api.example.com/v1"
    default_headers = {"x-token": "secret"}  # noqa: RUF012

    @property
    def client(self) -> httpx.Client:
        if self._client is None:
            self._client = httpx.Client(transport=httpx.MockTransport(echo), **self._settings())
        return self._client

    @property
    def async_client(self) -> httpx.AsyncClient:
        if self._async_client is None:
            self._async_client = httpx.AsyncClient(transport=httpx.MockTransport(echo), **self._settings())
        return self._async_client

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.api_success(self.get("/users/200"))


def response(status: int, headers: dict[str, str] | None = None, **content: Any) -> ApiResponse:
    request = httpx.Request("GET", "https://api.example.com/users?key=secret")
    return ApiResponse(httpx.Response(status, request=request, headers=headers, **content))


class Requesting(Api):
    """Has methods of its own under the names of the general verbs."""

    def request(self, *args: Any, **kwargs: Any) -> Any:
        return self.get("/own/200")

    async def arequest(self, *args: Any, **kwargs: Any) -> Any:
        return await self.aget("/own/200")


async def test_a_verb_is_not_led_astray_by_a_method_of_the_handler() -> None:
    handler = Requesting()

    assert handler.request().body["path"] == "/v1/own/200"
    assert (await handler.arequest()).body["path"] == "/v1/own/200"


def test_verbs_reach_the_path_below_the_base_address() -> None:
    api = Api()
    got = api.get("/users/200", params={"page": "2"}).body
    assert (got["method"], got["path"], got["query"], got["token"]) == ("GET", "/v1/users/200", {"page": "2"}, "secret")
    assert json.loads(api.post("/200", json={"a": 1}).body["sent"]) == {"a": 1}
    assert api.put("/200", data={"a": "1"}).body["sent"] == "a=1"
    assert [api.patch("/200", json={}).body["method"], api.delete("/200").body["method"]] == ["PATCH", "DELETE"]
    api.close()
    assert api._client is None


async def test_async_verbs_do_the_same() -> None:
    api = Api()
    verbs = [api.aget, api.apost, api.aput, api.apatch, api.adelete]
    assert [(await verb("/200")).body["method"] for verb in verbs] == ["GET", "POST", "PUT", "PATCH", "DELETE"]
    assert json.loads((await api.apost("/200", json={"a": 1})).body["sent"]) == {"a": 1}
    await api.aclose()
    assert api._async_client is None


def test_a_client_is_made_once_and_configured() -> None:
    class Configured(ApiHandler):
        base_url = "https://api.example.com"
        default_timeout = 3.0

        def configure_session(self, session: httpx.Client | httpx.AsyncClient) -> None:
            session.headers["authorization"] = "Bearer x"

        def call(self, context: StepContext) -> StepHandlerResult:
            return self.success()

    handler = Configured()
    client = handler.client
    assert client is handler.http_client
    assert (client.headers["authorization"], client.timeout.read) == ("Bearer x", 3.0)
    assert str(client.base_url) == "https://api.example.com"
    handler.close()
    assert client.is_closed


class Answers(BaseHTTPRequestHandler):
    """Answers and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    """Of a server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class Asks(ApiHandler):
    """Keeps the clients that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: list[httpx.Client | httpx.AsyncClient] = []

    def configure_session(self, session: httpx.Client | httpx.AsyncClient) -> None:
        self.clients.append(session)

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success()


def test_each_loop_has_an_async_client_of_its_own_which_is_closed_with_it(address: str) -> None:
    handler = Asks()
    for _ in range(3):
        asyncio.run(handler.aget(address))

    assert len(handler.clients) == 3
    assert all(each.is_closed for each in handler.clients)
    assert handler._async_clients is not None
    assert handler._async_clients._kept == {}


def test_a_loop_that_is_not_shut_down_leaves_nothing_behind_for_the_next(address: str) -> None:
    handler = Asks()
    for _ in range(2):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(handler.aclose())
        loop.run_until_complete(handler.aget(address))
        assert handler._async_clients is not None
        assert list(handler._async_clients._kept) == [loop]
        ((client, _),) = handler._async_clients._kept.values()
        loop.run_until_complete(client.aclose())
        loop.close()


async def test_calls_in_one_loop_share_a_client_until_it_is_closed(address: str) -> None:
    handler = Asks()
    await handler.aget(address)
    await handler.aget(address)
    await handler.aclose()
    assert [each.is_closed for each in handler.clients] == [True]

    await handler.aget(address)
    assert [each.is_closed for each in handler.clients] == [True, False]
    await handler.aclose()


@pytest.mark.parametrize(
    ("status", "error_type", "retryable"),
    [
        (400, "validation_error", False),
        (401, "authentication_error", False),
        (403, "authorization_error", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "http_error", False),
        (422, "validation_error", False),
        (429, "rate_limit_error", True),
        (500, "service_unavailable", True),
        (504, "service_unavailable", True),
        (505, "service_unavailable", False),
    ],
)
def test_a_status_is_classified(status: int, error_type: str, retryable: bool) -> None:
    failed = Api().api_failure(response(status))
    assert (failed.error_type, failed.retryable, failed.error_code) == (error_type, retryable, f"HTTP_{status}")
    assert failed.metadata["status_code"] == status


def test_only_these_statuses_are_tried_again() -> None:
    retryable = [status for status in range(400, 600) if ApiResponse(httpx.Response(status)).is_retryable]
    assert retryable == [408, 429, *range(500, 505)]


def test_a_failure_names_the_call_without_its_query() -> None:
    assert Api().api_failure(response(404)).error_message == "GET https://api.example.com/users answered 404"


def test_a_body_is_never_taken_from_a_failed_call_by_accident() -> None:
    failed = response(429, {"retry-after": "30"}, json={"email": "x"})
    for read in (failed.json, lambda: failed["email"], lambda: Api().api_success(failed)):
        with pytest.raises(StepExecutionError) as caught:
            read()
    failure = failure_from_exception(caught.value)
    assert (failure.error_type, failure.retryable, failure.retry_after) == ("rate_limit_error", True, 30.0)
    assert failed.body == {"email": "x"}


def test_a_success_carries_the_body() -> None:
    api = Api()
    assert api.api_success(response(200, json={"a": 1})) == StepHandlerResult.success({"a": 1}, {"status_code": 200})
    assert api.api_success(response(200, json=[1])).result == {"body": [1]}
    assert api.api_success(response(204), {"done": True}, include_response=False) == StepHandlerResult.success(
        {"done": True}
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "30"}, 30),
        ({"retry-after": "Fri, 02 Jan 2026 00:01:00 GMT", "date": "Fri, 02 Jan 2026 00:00:00 GMT"}, 60),
        ({"retry-after": "Fri, 02 Jan 2026 00:00:00 GMT", "date": "Fri, 02 Jan 2026 00:01:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers: dict[str, str], seconds: int | None) -> None:
    busy = response(429, headers)
    assert busy.retry_after == seconds
    assert failure_from_result(Api().api_failure(busy)).retry_after == seconds


def test_a_body_is_json_text_or_nothing() -> None:
    assert response(200, json={"a": 1})["a"] == 1
    assert response(200, text="plain").body == "plain"
    assert response(200, {"content-type": "application/json"}, content=b"{broken").body == "{broken"


def test_the_plain_form_leaves_cookies_out() -> None:
    plain = response(200, {"set-cookie": "session=1", "x-a": "b"}, json={}).to_dict()
    assert (plain["status_code"], plain["headers"]["x-a"]) == (200, "b")
    assert "set-cookie" not in plain["headers"]


def test_an_unreachable_service_is_tried_again() -> None:
    api = Api()
    broken = api.connection_error(httpx.ConnectError("refused"), "fetching the user")
    late = api.timeout_error(httpx.ReadTimeout("30 s"))
    assert (broken.error_message, broken.error_type) == (
        "fetching the user: connection failed: refused",
        "network_error",
    )
    assert (late.error_type, late.retryable, broken.retryable) == ("timeout", True, True)


def test_an_api_handler_says_what_it_can() -> None:
    assert {"process", "http"} <= set(Api().capabilities)


VERBS = ["get", "post", "put", "patch", "delete"]


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


class Remote(ApiHandler):
    """Calls the address with the verb that the step's context names."""

    verb = "get"

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.api_success(getattr(self, self.verb)("/"))


class RemoteAsync(Remote):
    async def call(self, context: StepContext) -> StepHandlerResult:  # type: ignore[override]
        try:
            return self.api_success(await getattr(self, f"a{self.verb}")("/"))
        finally:
            await self.aclose()


async def failure_of(kind: type[Remote], verb: str, url: str, timeout: float = 5.0) -> Failure:
    made = type("Made", (kind,), {"verb": verb, "base_url": url, "default_timeout": timeout})()
    try:
        result = made.call(context())
        await result if inspect.isawaitable(result) else None
    except Exception as error:
        return failure_from_exception(error, ErrorClassifier(default_retryable=False))
    raise AssertionError("the call went through")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", [Remote, RemoteAsync])
async def test_a_refused_connection_is_a_network_error_in_every_verb(kind: type[Remote], verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    failure = await failure_of(kind, verb, f"http://127.0.0.1:{port}")
    assert (failure.error_type, failure.retryable) == ("network_error", True)
    assert failure.metadata["exception_type"] == "ConnectError"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", [Remote, RemoteAsync])
async def test_an_answer_that_does_not_come_is_a_timeout_in_every_verb(
    kind: type[Remote], verb: str, deaf: socket.socket
) -> None:
    failure = await failure_of(kind, verb, f"http://127.0.0.1:{deaf.getsockname()[1]}", timeout=0.01)
    assert (failure.error_type, failure.retryable) == ("timeout", True)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://[::1", ""])
async def test_an_address_that_is_none_is_no_network_error(url: str) -> None:
    failure = await failure_of(Remote, "get", url)
    assert (failure.error_type, failure.retryable) == ("validation_error", False)


def test_a_broken_connection_of_the_standard_library_is_a_network_error() -> None:
    failure = failure_from_exception(ConnectionResetError("peer"), ErrorClassifier(default_retryable=False))
    assert (failure.error_type, failure.retryable) == ("network_error", True)
