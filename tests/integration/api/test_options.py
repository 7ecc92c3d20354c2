"""How the interface is offered: behind a proxy, to browsers, compressed, with or without its configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import httpx
import pytest

import tasker
from tasker.api.application import Options, application
from tasker.api.sockets import require_loopback
from tasker.app.configured import configured
from tasker.app.http_serving import listening_socket, options_of, with_own_pool
from tasker.errors import UsageError
from tasker.process.http import HttpSettings, host_and_port
from tasker.settings.check import check
from tasker.settings.layering import nested
from tests.integration.api.program import order
from tests.integration.api.published import misfits
from tests.integration.api.test_errors import problem

SECRET = "postgresql://ada:secret@db.example.com/tasker"


@asynccontextmanager
async def offered(app: tasker.App, options: Options) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=application(app, options))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
        yield client


async def test_below_the_path_of_a_proxy_it_answers_and_its_page_finds_the_description(app: tasker.App) -> None:
    async with offered(app, Options(root_path="/tasker")) as client:
        for path in ("/v1/tasks", "/tasker/v1/tasks"):
            assert (await client.get(path)).status_code == 200
        assert 'href="/tasker/openapi.json"' in (await client.get("/docs")).text


async def test_pages_of_the_named_origins_may_send_requests_and_no_others(app: tasker.App) -> None:
    ours, other = {"Origin": "https://ops.example.com"}, {"Origin": "https://example.org"}
    async with offered(app, Options(cors_origins=["https://ops.example.com"])) as client:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        allowed = await client.options("/v1/tasks", headers={**ours, **asked})
        assert allowed.headers["access-control-allow-origin"] == ours["Origin"]
        assert (await client.get("/v1/tasks", headers=ours)).headers["access-control-allow-origin"] == ours["Origin"]
        assert "access-control-allow-origin" not in (await client.get("/v1/tasks", headers=other)).headers
    async with offered(app, Options()) as client:
        assert "access-control-allow-origin" not in (await client.get("/v1/tasks", headers=ours)).headers


async def test_a_large_answer_is_compressed_for_those_who_take_it(client: httpx.AsyncClient) -> None:
    await client.post("/v1/tasks", json=order(1, context={"amount": 1, "text": "x" * 5000}))

    assert (await client.get("/v1/tasks")).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in (await client.get("/v1/tasks", headers={"accept-encoding": "identity"})).headers


async def test_the_configuration_is_told_where_that_is_configured_and_never_a_secret(app: tasker.App) -> None:
    values = {"orchestration.web.config_endpoint_enabled": True, "common.database.url": SECRET}
    settings = check(nested(values)).settings
    assert settings is not None
    async with offered(app, options_of(configured(settings))) as client:
        answer = await client.get("/config")
    assert list(misfits(answer.json(), "orchestration", "OrchestrationConfigResponse")) == []
    assert "secret" not in answer.text
    assert "example.com" not in answer.text
    async with offered(app, Options()) as client:
        problem(await client.get("/config"), 404, "NOT_FOUND")


def test_a_server_has_the_connections_of_its_own_settings() -> None:
    settings = check(nested({"orchestration.web.database_pools.web_api_max_connections": 44})).settings
    assert settings is not None

    assert with_own_pool(configured(settings)).database.pool.max_connections == 44


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "db.example.com", "", "localhost.example.com"])
def test_without_authentication_an_address_that_others_reach_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="no authentication"):
        require_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_an_address_of_this_machine_is_taken(host: str) -> None:
    require_loopback(host)


def test_a_port_that_is_taken_is_a_mistake_that_says_what_to_do() -> None:
    with closing(listening_socket(HttpSettings(), "127.0.0.1", 0, None)) as taken:
        http = HttpSettings(bind_address=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(UsageError, match="cannot listen on") as refused:
            listening_socket(http, None, None, None)

    assert "--port" in str(refused.value.hint)


def test_a_server_that_is_turned_off_does_not_start() -> None:
    with pytest.raises(UsageError, match="turned off"):
        listening_socket(HttpSettings(enabled=False), None, 0, None)


def test_an_address_has_a_host_and_a_port() -> None:
    assert host_and_port("[::1]:80") == ("::1", 80)
    assert host_and_port("localhost:8080") == ("localhost", 8080)
