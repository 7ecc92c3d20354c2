"""A client whose server speaks https and wants to know who asks."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import tasker
from tasker.cli.remote.http_fleet import HttpFleet
from tasker.client import HttpClient
from tasker.client.servers import ServerAddress
from tasker.errors import NotAuthenticated, NotPermitted, ServerUnreachable
from tasker.server.application import application
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate
from tasker.server.sockets import HttpServer, listen, tls_files
from tasker.settings.http import ApiKeyEntry, Auth
from tests.integration.api.test_options import self_signed

ORDER = {"namespace": "shop", "context": {"amount": 41}}
KEYS = (
    ApiKeyEntry(key="may-do-all", permissions=("*",), name="root"),
    ApiKeyEntry(key="may-read-one", permissions=("tasks:read", "tasks:cancel"), name="reader"),
)


@pytest_asyncio.fixture(loop_scope="module")
async def guarded(app: tasker.App, tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    gate = ClosedGate(Authenticator(Auth(enabled=True, api_keys_enabled=True, api_keys=KEYS)))
    files = self_signed(tmp_path)
    server = HttpServer(application(app, gate=gate), listen("127.0.0.1", 0), grace_seconds=5, tls=tls_files(*files))
    await server.start()
    yield server.address, Path(files[0])
    await server.stop()


async def test_a_client_says_who_it_is_and_trusts_what_it_is_told_to(guarded: tuple[str, Path]) -> None:
    url, certificate = guarded
    async with HttpClient(url, api_key="may-do-all", ca_file=certificate) as client:
        task = await client.create_task("orders", **ORDER)  # type: ignore[arg-type]
        assert (await client.wait(task.task_uuid, 30)).status == "complete"
        assert [event.kind async for event in client.stream(task.task_uuid)][-1] == "end"
    async with HttpClient(url, api_key="may-read-one", ca_file=certificate) as client:
        with pytest.raises(NotPermitted):
            await client.create_task("orders", **ORDER)  # type: ignore[arg-type]
        fleet = HttpFleet(client)
        assert await fleet.tasks.starting_with(task.task_uuid.replace("-", "")) == [task.task_uuid]
        assert await fleet.tasks.starting_with("0" * 32) == []
        with pytest.raises(NotPermitted):
            await fleet.tasks.starting_with(task.task_uuid[:8])
    for credentials in ({}, {"api_key": "nobody"}, {"token": "nobody"}):
        async with HttpClient(url, ca_file=certificate, **credentials) as client:
            with pytest.raises(NotAuthenticated) as refused:
                await client.get_task(task.task_uuid)
            assert refused.value.hint
            with pytest.raises(NotAuthenticated):
                await anext(client.stream(task.task_uuid))
    async with HttpClient(url) as client:
        with pytest.raises(ServerUnreachable, match="certificate verification failed") as untrusted:
            await client.create_task("orders", **ORDER)  # type: ignore[arg-type]
        assert "--ca-file" in (untrusted.value.hint or "")
    async with HttpClient(url.replace("https", "http")) as client:
        with pytest.raises(ServerUnreachable):
            await client.get_task(task.task_uuid)


def test_certificates_are_read_only_where_something_is_encrypted(tmp_path: Path) -> None:
    certificate, _ = self_signed(tmp_path)
    trusting, plain = (
        ServerAddress("https://here", ca_file=Path(certificate)).trust(),
        ServerAddress("http://here").trust(),
    )
    assert trusting.cert_store_stats()["x509"] == 1
    assert not any(plain.cert_store_stats().values())
    assert plain.verify_mode == trusting.verify_mode == ssl.CERT_REQUIRED
