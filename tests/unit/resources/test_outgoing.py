"""Connections are made to the addresses that were checked, and to no other."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tasker.outgoing import AddressRefused, guarded_async_transport, guarded_transport
from tasker.step_handler import ApiHandler
from tests.support.scripted_server import reply, scripted_server

REFUSED = [
    "127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]", "169.254.169.254", "[fd00:ec2::254]", "10.0.0.5", "192.168.1.1", "100.64.0.1", "0.0.0.0",
    "[fe80::1]", "[fc00::1]", "224.0.0.1", "198.18.0.1",
]  # fmt: skip
METADATA = ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "100.100.100.200"]
EVERYTHING = ("0.0.0.0/0", "::/0")


async def fetched(url: str, networks: tuple[str, ...], *, blocking: bool) -> httpx.Response:
    if blocking:
        with httpx.Client(transport=guarded_transport(networks)) as client:
            return await asyncio.to_thread(client.get, url)
    async with httpx.AsyncClient(transport=guarded_async_transport(networks)) as client:
        return await client.get(url)


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("host", REFUSED)
async def test_addresses_that_are_not_public_are_refused(host: str, blocking: bool) -> None:
    with pytest.raises(AddressRefused, match="not public"):
        await fetched(f"http://{host}:9/", (), blocking=blocking)


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("host", METADATA)
async def test_metadata_services_are_refused_whatever_is_permitted(host: str, blocking: bool) -> None:
    with pytest.raises(AddressRefused):
        await fetched(f"http://{host}/latest/meta-data", EVERYTHING, blocking=blocking)


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_permitted_network_is_reached_by_name_and_a_redirect_is_checked_again(blocking: bool) -> None:
    async with scripted_server([reply(302, "", location="http://127.0.0.2:9/inner")]) as server:
        answer = await fetched(server.url.replace("127.0.0.1", "localhost"), ("127.0.0.1/32",), blocking=blocking)
        assert answer.status_code == 302
        assert "host: localhost" in server.heard[0].lower()
        with pytest.raises(AddressRefused, match=r"127\.0\.0\.2"):
            await fetched(answer.headers["location"], ("127.0.0.1/32",), blocking=blocking)


@pytest.mark.parametrize("blocking", [True, False])
async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    """A name that is public when it is checked and private when it is connected to is asked for once."""
    answers = iter(["127.0.0.1", "127.0.0.2"])
    real: Callable[..., Any] = socket.getaddrinfo

    def changing(host: Any, *arguments: Any, **options: Any) -> Any:
        return real(next(answers) if host in ("moving.example", b"moving.example") else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    async with scripted_server([reply(200, {"ok": True})]) as server:
        url = server.url.replace("127.0.0.1", "moving.example")
        assert (await fetched(url, ("127.0.0.1/32",), blocking=blocking)).json() == {"ok": True}
    assert next(answers) == "127.0.0.2"


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with pytest.raises(AddressRefused):
        await fetched("http://10.0.0.5/", (), blocking=True)


class Guarded(ApiHandler):
    handler_name = "guarded"
    guarded = True

    def call(self, context: Any) -> Any:
        return self.success()


async def test_a_guarded_api_handler_refuses_private_addresses() -> None:
    handler = Guarded()
    with pytest.raises(AddressRefused):
        handler.get("http://127.0.0.1:9/")
    with pytest.raises(AddressRefused):
        await handler.aget("http://127.0.0.1:9/")
    handler.close()
    await handler.aclose()
