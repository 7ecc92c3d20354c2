"""A server on a socket, in front of a program that also works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import tasker
from tasker.client import HttpClient
from tasker.server.application import Options, application
from tasker.server.sockets import HttpServer, listen
from tests.integration.api.conftest import app, registry
from tests.support.module_loop import share_loops

__all__ = ["app", "registry"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_loops(items, Path(__file__).parent)


@pytest_asyncio.fixture(loop_scope="module")
async def http_server(app: tasker.App) -> AsyncIterator[HttpServer]:
    made = HttpServer(application(app, Options(configuration={})), listen("127.0.0.1", 0), grace_seconds=5)
    await made.start()
    yield made
    await made.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def client(http_server: HttpServer) -> AsyncIterator[HttpClient]:
    async with HttpClient(http_server.address, initiator="ada", source_system="tests") as made:
        yield made
