"""The interface in front of a program that also works: one program and one database for each module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.server.application import application
from tasker.template import compile_text
from tests.integration.api.program import TEMPLATES, registered
from tests.support.kept_connections import KeptConnections, lent_database
from tests.support.laboratory import Laboratory
from tests.support.module_loop import share_loops


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_loops(items, Path(__file__).parent)


@asynccontextmanager
async def program(database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    """A program that works on the templates of these tests."""
    async with tasker.App(database_url, registry=registry) as running:
        for template in TEMPLATES:
            (plan,) = compile_text(template).plans
            await running.plans.register(plan, force=True)
            await running.plan(plan)
        yield running


@pytest.fixture(scope="module")
def module_database_url(laboratory: Laboratory, kept_connections: KeptConnections) -> Iterator[str]:
    """A database that modules use in turn."""
    with lent_database(laboratory, kept_connections) as url:
        yield url


@pytest.fixture(scope="module")
def registry() -> HandlerRegistry:
    return registered()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(module_database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    async with program(module_database_url, registry) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def own_app(module_database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    """For modules whose tests stop their program or break its connections: one for each test, taken as `app`."""
    async with program(module_database_url, registry) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(app: tasker.App) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=application(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as made:
        yield made
