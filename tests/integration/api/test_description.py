"""The description of the interface: committed, complete, and true of what a server answers."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from fastapi.routing import APIRoute

import tasker
from tasker.operations.permissions import Permission
from tasker.server import openapi
from tasker.server.application import SUBJECTS, application, described
from tasker.server.auth.gate import REQUIRED
from tasker.server.openapi import page
from tasker.server.sockets import HttpServer, listen
from tests.support.tables import for_each
from tools.openapi import FILE, current

PUBLIC = ("/v1/hooks/", "/health", "/live", "/ready", "/metrics", "/openapi.json", "/docs", "/api-docs")
ROUTES = [route for module in SUBJECTS for route in module.routes.routes if isinstance(route, APIRoute)]
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest_asyncio.fixture(loop_scope="module")
async def http_server(app: tasker.App) -> AsyncIterator[HttpServer]:
    made = HttpServer(application(app), listen("127.0.0.1", 0), grace_seconds=1)
    await made.start()
    yield made
    await made.stop()


def test_the_committed_description_is_that_of_the_code() -> None:
    assert FILE.read_text() == current(), "run: make generate"


def test_the_route_of_a_request_is_looked_for_once_in_one_list() -> None:
    assert described().router.routes == [route for module in SUBJECTS for route in module.routes.routes]


@for_each(ROUTES)
def test_every_route_names_its_permission_or_is_open_to_everybody(route: APIRoute) -> None:
    permission = (route.openapi_extra or {}).get(REQUIRED)

    assert (permission is None) == route.path.startswith(PUBLIC)
    if permission is not None:
        Permission(permission)


def test_every_operation_says_what_it_does_and_which_permission_it_needs() -> None:
    for path, operations in described().openapi()["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], f"{method} {path}"
            if REQUIRED in operation:
                assert f"`{operation[REQUIRED]}`" in operation["description"]


async def test_the_description_and_its_page_are_served(client: httpx.AsyncClient) -> None:
    assert (await client.get("/openapi.json")).json() == described().openapi()
    assert (await client.get("/docs")).text == page(described().openapi(), "")


async def test_the_description_is_made_once_and_by_no_event_loop(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers: list[int] = []
    monkeypatch.setattr(openapi, "get_openapi", lambda **_: makers.append(threading.get_ident()) or {"paths": {}})

    for _ in range(3):
        await client.get("/openapi.json")

    assert len(makers) == 1
    assert makers != [threading.get_ident()]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["2", pytest.param("12", marks=pytest.mark.servers)])
async def test_a_server_answers_whatever_is_sent_as_it_is_described(
    http_server: HttpServer, tmp_path: Path, seconds: str
) -> None:
    """Requests made from the description, good and bad, for some seconds."""
    program = Path(sys.executable).with_name("schemathesis")
    options = ["--checks", CHECKS, "--max-examples", "8", "--phases", "examples,fuzzing", "--max-time", seconds]
    run = await asyncio.create_subprocess_exec(
        program,
        "run",
        f"{http_server.address}/openapi.json",
        *options,
        *("--seed", "1", "--request-timeout", "10", "--no-color"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
    )
    output, _ = await run.communicate()

    assert run.returncode == 0, output.decode()


def test_the_page_shows_every_operation_with_its_fields_and_asks_nobody_for_anything() -> None:
    document = described().openapi()
    shown = page(document, "/engine")

    for path, operations in document["paths"].items():
        for method in operations:
            assert f'<b class="{method}">{method.upper()}</b><code>{path}</code>' in shown
    assert '<a href="/engine/openapi.json">' in shown
    assert "<tr><td><code>idempotency_key</code><td>string<td>Tasks of one template and key are one task.</tr>" in shown
    assert "<tr><td><code>yaml</code><td>string, required<td>One template, or several documents.</tr>" in shown
    assert [each for each in ("<script", "http:", "https:", "url(") if each in shown] == []
