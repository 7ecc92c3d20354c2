"""All connections of a server: a bound for each client, one for all, and no descriptor left."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
from contextlib import AsyncExitStack

import pytest

from tasker.server import accepting
from tasker.server.connection_limits import ConnectionLimits, default_connections
from tests.integration.api.connections.conftest import GET, Serve, unconnected


@pytest.mark.parametrize("limits", [{"connections": 10, "per_client": 2}, {"connections": 4}], ids=["set", "half"])
async def test_client_with_too_many_connections_is_refused_and_others_are_served(
    serve: Serve, caplog: pytest.LogCaptureFixture, limits: dict[str, int]
) -> None:
    served = await serve(**limits)
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(served.client()) for _ in range(2)]
        for client in (first, second):
            await client.send(GET)
            assert (await client.answer()).status == 200
        for _ in range(5):
            async with served.client() as third:
                answer = await third.answer()
                assert (answer.status, answer.problem["code"]) == (429, "too_many_connections")
                assert answer.headers["retry-after"] == "1"
        async with served.client("127.0.0.2") as other:
            await other.send(GET)
            assert (await other.answer()).status == 200
        first.writer.close()
        await first.writer.wait_closed()
        async with served.client("127.0.0.2") as other:  # the server has seen the end of the first by then
            await other.send(GET)
            await other.answer()
        assert (await served.ask(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")))[0].status == 200
    (line,) = [each for each in caplog.messages if "connections_refused" in each]
    assert "from=127.0.0.1 limit_per_client=2" in line


async def test_new_connection_takes_the_place_of_one_that_is_idle(serve: Serve) -> None:
    served = await serve(connections=2, per_client=2)
    async with served.client() as idle, served.client() as busy:
        for client in (idle, busy):
            await client.send(GET)
            assert (await client.answer()).status == 200
        await busy.send(b"GET / HT")
        async with served.client() as third:
            await third.send(GET)
            assert (await third.answer()).status == 200
        assert await idle.rest() == b""
        await busy.send(GET[8:])
        assert (await busy.answer()).status == 200


async def test_server_without_descriptors_says_so_once_and_goes_on_when_it_has_some(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "AGAIN_SECONDS", 0.01)
    served, loop, clients = await serve(), asyncio.get_running_loop(), unconnected(3)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    asked = asyncio.Event()
    warned = logging.Handler()
    warned.emit = lambda record: loop.call_later(0.1, asked.set)  # type: ignore[method-assign, assignment]
    logging.getLogger("tasker.api").addHandler(warned)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0), before[1]))
        for client in clients:
            await loop.sock_connect(client, served.server.socket.getsockname())
        await asyncio.wait_for(asked.wait(), 60)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        logging.getLogger("tasker.api").removeHandler(warned)
    for client in clients:
        await loop.sock_sendall(client, GET)
        assert (await loop.sock_recv(client, 100)).startswith(b"HTTP/1.1 200 OK")
        client.close()
    (line,) = caplog.messages
    assert "accept_failed count=1" in line
    assert "Too many open files" in line


def test_default_bound_leaves_descriptors_to_the_rest_of_the_process() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (600, before[1]))
        assert (default_connections(), ConnectionLimits().of_one_client()) == (500, 250)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_ipv6_network_counts_as_one_client(address: str, client: str) -> None:
    assert accepting.client_of(address) == client
