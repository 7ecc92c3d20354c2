"""How the interface is offered: behind a proxy, to browsers, compressed, with or without its configuration."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import tasker
from tasker.app.configured import configured
from tasker.app.http_serving import listening_socket, options_of, with_own_pool
from tasker.errors import UsageError
from tasker.process.http_settings import host_and_port
from tasker.server.application import Options, application
from tasker.server.sockets import HttpServer, listen, require_loopback, tls_files
from tasker.settings.check import check
from tasker.settings.http import OrchestrationWeb
from tasker.settings.nested import nested
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
        created = await client.post("/tasker/v1/tasks", json=order(77))
        assert created.headers["location"] == f"/tasker/v1/tasks/{created.json()['task_uuid']}"


async def test_pages_of_the_named_origins_may_send_requests_and_no_others(app: tasker.App) -> None:
    ours, other = {"Origin": "https://ops.example.com"}, {"Origin": "https://example.org"}
    async with offered(app, Options(cors_origins=["https://ops.example.com"])) as client:
        wanted = "content-type, x-api-key, traceparent, tracestate"
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted}
        allowed = await client.options("/v1/tasks", headers={**ours, **asked})
        assert allowed.status_code == 200
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
    with pytest.raises(UsageError, match="authentication is off"):
        require_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_an_address_of_this_machine_is_taken(host: str) -> None:
    require_loopback(host)


def test_a_port_that_is_taken_is_a_mistake_that_says_what_to_do() -> None:
    with closing(listening_socket(OrchestrationWeb(), "127.0.0.1", 0, None)) as taken:
        http = OrchestrationWeb(bind_address=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(UsageError, match="cannot listen on") as refused:
            listening_socket(http, None, None, None)

    assert "--port" in str(refused.value.hint)


def test_a_port_that_is_not_for_everybody_is_not_said_to_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(self: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", bind)
    with pytest.raises(UsageError, match="Permission denied") as refused:
        listening_socket(OrchestrationWeb(), "127.0.0.1", 80, None)

    assert "below 1024" in str(refused.value.hint)


def test_a_server_that_is_turned_off_does_not_start() -> None:
    with pytest.raises(UsageError, match="turned off"):
        listening_socket(OrchestrationWeb(enabled=False), None, 0, None)


def test_an_address_has_a_host_and_a_port() -> None:
    assert host_and_port("[::1]:80") == ("::1", 80)
    assert host_and_port("localhost:8080") == ("localhost", 8080)


async def test_a_client_that_asks_too_often_is_told_when_to_ask_again(app: tasker.App) -> None:
    async with offered(app, Options(requests_per_second=1, request_burst=2)) as client:
        for _ in range(2):
            assert (await client.get("/v1/tasks")).status_code == 200
        refused = await client.get("/v1/tasks")
        problem(refused, 429, "RATE_LIMITED", "too_many_requests")
        assert refused.headers["retry-after"] == "1"
        assert (await client.get("/live")).status_code == 200


async def test_a_server_with_a_certificate_speaks_https_and_nothing_else(app: tasker.App, tmp_path: Path) -> None:
    files = self_signed(tmp_path)
    server = HttpServer(application(app), listen("127.0.0.1", 0), grace_seconds=1, tls=tls_files(*files))
    await server.start()
    try:
        assert server.address.startswith("https://")
        trusted = ssl.create_default_context(cafile=files[0])
        async with httpx.AsyncClient(base_url=server.address, verify=trusted) as client:
            assert (await client.get("/live")).status_code == 200
        async with httpx.AsyncClient(base_url=server.address.replace("https", "http")) as plain:
            with pytest.raises(httpx.TransportError):
                await plain.get("/live")
    finally:
        await server.stop()


def test_a_certificate_without_its_key_is_a_mistake(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    assert tls_files("", "") is None
    for one, other, reason in (
        (certificate, "", "tls_key_path is not set"),
        ("", key, "tls_certificate_path is not set"),
        (certificate, certificate, "they do not match"),
        (certificate, str(tmp_path / "none"), "No such file"),
    ):
        with pytest.raises(UsageError, match=reason):
            tls_files(one, other)


def self_signed(folder: Path) -> tuple[str, str]:
    """A certificate for this machine, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(secret)
    return str(folder / "certificate.pem"), str(folder / "key.pem")
