"""The pages in front of a program that also works: one program and one database for each module."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.operations.permissions import Permission
from tasker.server.application import Options, application
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate, open_gate
from tasker.server.web.site import add_pages
from tasker.settings.http import ApiKeyEntry, Auth
from tasker.template import compile_text
from tests.integration.api.program import CARDS, TEMPLATES, WAITING, registered
from tests.support.kept_connections import KeptConnections, lent_database
from tests.support.laboratory import Laboratory
from tests.support.module_loop import share_loops

TOKEN = re.compile(r'name="form_token" value="([\w-]+)"')
KEYS = (
    ApiKeyEntry(key="everything", permissions=("*",), name="ada"),
    ApiKeyEntry(key="nothing", permissions=(), name="nobody"),
    ApiKeyEntry(key="confined", permissions=("*",), name="shopkeeper", namespaces=("shop",)),
    ApiKeyEntry(key="views", permissions=("tasks:list", "tasks:views_change"), name="librarian"),
    *(
        ApiKeyEntry(key=f"only-{permission}", permissions=(permission,), name=f"only-{permission}")
        for permission in Permission
    ),
    *(
        ApiKeyEntry(key=f"but-{permission}", permissions=tuple({*Permission} - {permission}), name="most")
        for permission in Permission
    ),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_loops(items, Path(__file__).parent)


class Site:
    """A browser without scripts: keeps cookies, sends forms that it has opened."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def get(self, path: str = "", **params: Any) -> httpx.Response:
        """The page of an address below `/ui`."""
        return await self.client.get(f"/ui{f'/{path}' if path else ''}", params=params or None)

    async def text(self, path: str = "", **params: Any) -> str:
        """What a page of an address that works says, its entities read."""
        answer = await self.get(path, **params)
        assert answer.status_code == 200, answer.text
        return unescape(answer.text)

    async def token(self) -> str:
        """That of the forms that this browser opens."""
        found = TOKEN.search((await self.get("sign-in?next=")).text) or TOKEN.search((await self.get()).text)
        return found[1] if found else self.client.cookies.get("tasker_form", "")

    async def post(self, path: str, follow: bool = True, **fields: Any) -> httpx.Response:
        """Send a form of a page, and go where that leads."""
        data = {"form_token": await self.token(), **fields}
        answer = await self.client.post(f"/ui/{path}", data=data)
        while follow and answer.is_redirect:
            answer = await self.client.get(answer.headers["location"])
        return answer

    async def sign_in(self, key: str) -> httpx.Response:
        """Show a key."""
        return await self.post("sign-in", credential=key)


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
    """Works on the templates of the interface's tests; `nobody/waiting` has no worker's handler."""
    async with tasker.App(module_database_url, registry=registry) as running:
        for template in (*TEMPLATES, CARDS):
            (plan,) = compile_text(template).plans
            await running.plans.register(plan, force=True)
            await running.plan(plan)
        await running.plans.register(compile_text(WAITING).plans[0], force=True)
        yield running


Offered = Callable[..., AbstractAsyncContextManager[Site]]


@asynccontextmanager
async def offered(app: tasker.App, *, closed: bool = False, **options: Any) -> AsyncIterator[Site]:
    """The pages of a program, with options; `closed`: the `KEYS` are asked for."""
    settings = Auth(enabled=True, api_keys_enabled=True, api_keys=KEYS)
    gate = ClosedGate(Authenticator(settings)) if closed else open_gate
    served = application(app, Options(pages=add_pages, **options), gate)
    transport = httpx.ASGITransport(app=served)
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker.test") as client:
        yield Site(client)


@pytest_asyncio.fixture(loop_scope="module")
async def site(app: tasker.App) -> AsyncIterator[Site]:
    """Open to everybody."""
    async with offered(app) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def closed(app: tasker.App) -> AsyncIterator[Site]:
    """Asks who is there."""
    async with offered(app, closed=True) as made:
        yield made
