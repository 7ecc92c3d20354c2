"""Routes of plugins: behind the gate like those of the server, and no plugin takes what is another's."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio
from fastapi import APIRouter, Body, Request, WebSocket

from tasker.app.configured import UNCONFIGURED
from tasker.app.http_serving import options_of
from tasker.plugins.host import PluginHost
from tasker.server.application import Options, application, described, paths
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate
from tasker.server.plugin_routes import Permission, needs, offered_routers, plugin_router
from tasker.services.fleet.metrics import AccessCounts
from tasker.settings.http import ApiKeyEntry, Auth
from tests.docs.snippets import snippets
from tests.support.strangers import install_plugin
from tools.openapi import FILE

READS, STEERS = needs(Permission.TASKS_READ), needs(Permission.TASKS_CANCEL)
PAGE = Path(__file__).parents[3] / "docs" / "writing-plugins.md"
KEYS = (
    ApiKeyEntry(key="reader", permissions=("tasks:read", "tasks:list"), name="reader"),
    ApiKeyEntry(key="of the shop", permissions=("tasks:*",), name="shopkeeper", namespaces=("shop",)),
)


def plugins(**hooks: Callable[[], Any]) -> PluginHost:
    return PluginHost({name: {"tasker_routers": hook} for name, hook in hooks.items()})


def working() -> list[APIRouter]:
    router, own = plugin_router(tag="shop"), plugin_router("/shop")

    @router.post("/orders/{namespace}", **READS)
    async def orders(namespace: str, amount: int = Body(embed=True)) -> dict[str, Any]:
        return {namespace: amount}

    @router.get("/all", **READS)
    def everywhere() -> dict[str, str]:
        return {"all": "of it"}

    @own.delete("/orders", **STEERS)
    async def steer() -> None: ...

    @own.get("/bad", **READS)
    def bad() -> None:
        raise ValueError("no")

    @own.get("/exit", **READS)
    def leave() -> None:
        raise SystemExit(3)

    return [router, own]


async def failed(*, namespace: str, status: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(task_uuid=f"one of {namespace} in {status}")]


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    tasks = SimpleNamespace(list=failed)
    program = cast(Any, SimpleNamespace(tasks=tasks, metrics=SimpleNamespace(access=AccessCounts())))
    names: dict[str, Any] = {}
    (snippet,) = [each.text for each in snippets(PAGE.read_text()) if "def tasker_routers" in each.text]
    exec(snippet.replace('"/shop"', '"/page"'), names)
    routers = offered_routers(plugins(till=working, page=names["tasker_routers"]), paths())
    gate = ClosedGate(Authenticator(Auth(enabled=True, api_keys_enabled=True, api_keys=KEYS)))
    transport = httpx.ASGITransport(app=application(program, Options(routers=routers), gate))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as made:
        yield made


async def answer(client: httpx.AsyncClient, method: str, path: str, key: str | None, content: bytes = b"") -> Any:
    headers = {"Content-Type": "application/json", **({"X-API-Key": key} if key else {})}
    found = await client.request(method, path, headers=headers, content=content)
    return found.status_code if found.is_error else found.json()


async def test_routes_are_offered_below_the_plugins_name_or_a_prefix_of_their_own(client: httpx.AsyncClient) -> None:
    orders = ("POST", "/plugins/till/orders/shop", "reader", b'{"amount": 7}')
    assert await answer(client, *orders) == {"shop": 7}
    assert await answer(client, "GET", "/plugins/till/all", "reader") == {"all": "of it"}
    assert await answer(client, "DELETE", "/shop/orders", "of the shop") == 403  # its path names no namespace
    assert await answer(client, "DELETE", "/shop/orders", "reader") == 403


async def test_the_route_of_the_page_answers(client: httpx.AsyncClient) -> None:
    assert await answer(client, "GET", "/page/failed/elsewhere", "reader") == ["one of elsewhere in error"]
    assert await answer(client, "GET", "/page/failed/elsewhere", "of the shop") == 403


async def test_callers_are_asked_who_they_are_before_anything_is_read(client: httpx.AsyncClient) -> None:
    for path in ("/plugins/till/orders/shop", "/plugins/till/orders/elsewhere"):
        assert await answer(client, "POST", path, None, b"{") == 401
        assert await answer(client, "POST", path, "unknown", b"{") == 401
    assert await answer(client, "POST", "/plugins/till/orders/elsewhere", "of the shop", b"{") == 403
    assert await answer(client, "POST", "/plugins/till/orders/shop", "of the shop", b'{"amount": 7}') == {"shop": 7}


async def test_what_a_route_raises_is_a_problem_of_that_request(client: httpx.AsyncClient) -> None:
    for path in ("/shop/bad", "/shop/exit"):
        found = await client.get(path, headers={"X-API-Key": "reader"})
        assert (found.status_code, found.headers["content-type"]) == (500, "application/problem+json")
    assert await answer(client, "GET", "/plugins/till/all", "reader") == {"all": "of it"}


async def test_only_that_servers_description_has_them(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    operation = document["paths"]["/plugins/till/orders/{namespace}"]["post"]
    assert operation["description"] == "Permission: `tasks:read`."
    assert operation["security"]
    assert {"/plugins/till/all", "/shop/orders"} <= {*document["paths"]}
    assert described().openapi() == json.loads(FILE.read_text())


async def reading(request: Request) -> None: ...


def plain() -> APIRouter:
    router = APIRouter()
    router.add_api_route("/open", reading, **READS)
    return router


def with_route(prefix: str = "", **declared: Any) -> APIRouter:
    router = plugin_router(prefix)
    router.add_api_route("/x", reading, **declared)
    return router


def including() -> APIRouter:
    router = plugin_router()
    router.include_router(plain(), prefix="/inner")
    return router


def listening() -> APIRouter:
    async def listen(socket: WebSocket) -> None: ...

    router = plugin_router()
    router.add_api_websocket_route("/listen", listen)
    return router


def test_a_server_is_configured_with_the_routers_of_its_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from tasker.plugins.hooks import hookimpl\nfrom tasker.server.plugin_routes import plugin_router\n"
    source += "@hookimpl\ndef tasker_routers(): return plugin_router()\n"
    install_plugin(tmp_path, monkeypatch, "till", source)
    assert [each.prefix for each in options_of(UNCONFIGURED).routers] == ["/plugins/till"]


@pytest.mark.parametrize(
    ("router", "reason"),
    [
        (7, "expected a fastapi.APIRouter"),
        (plain(), "/open is no route of a `plugin_router`"),
        (including(), "/inner/open is no route of a `plugin_router`"),
        (listening(), "/listen is no route of a `plugin_router`"),
        (with_route(), "/x names no permission"),
        (with_route("/v1/mine", **READS), "/v1 is taken by the server"),
        (with_route("/plugins/other", **READS), "/plugins is taken by the server"),
        (with_route("/config", **READS), "/config is taken by the server"),
        (with_route("/taken", **READS), "/taken is taken by first"),
        (with_route("/{any}", **READS), "its prefix begins with a parameter"),
    ],
)
def test_a_router_that_cannot_be_offered_is_named_and_the_others_are_offered(
    caplog: pytest.LogCaptureFixture, router: Any, reason: str
) -> None:
    good, taken = with_route(**READS), with_route("/taken", **READS)
    offers = plugins(first=lambda: [taken], second=lambda: [router, good], third=lambda: 1 / 0)
    found = offered_routers(offers, paths())
    assert [each.prefix for each in found] == ["", "/plugins/second"]
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert [line for line in told if f" reason={reason}" in line and "plugin=second" in line]
    assert [line for line in told if line.startswith("plugin_failed plugin=third hook=tasker_routers")]
