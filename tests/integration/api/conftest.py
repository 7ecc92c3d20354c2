"""The interface in front of a program that also works, on one database for each module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.api.application import application
from tasker.handler import HandlerRegistry
from tasker.template import compile_text
from tests.integration.api.program import TEMPLATES, registered


@pytest.fixture
def registry() -> HandlerRegistry:
    return registered()


@pytest_asyncio.fixture
async def app(module_database_url: str, registry: HandlerRegistry) -> AsyncIterator[tasker.App]:
    async with tasker.App(module_database_url, registry=registry) as running:
        for template in TEMPLATES:
            (plan,) = compile_text(template).plans
            await running.plans.register(plan, force=True)
            await running.plan(plan)
        yield running


@pytest_asyncio.fixture
async def client(app: tasker.App) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=application(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as made:
        yield made
