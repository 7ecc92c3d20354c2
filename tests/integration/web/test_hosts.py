"""A server that asks nobody who they are answers only what was sent to this machine by its names."""

from __future__ import annotations

import httpx
import pytest

import tasker
from tasker.server.application import Options, application
from tasker.server.envelope import host_of


@pytest.mark.parametrize(
    "host",
    ["localhost:8080", "127.0.0.1", "[::1]:80", "LOCALHOST", "tasker.localhost", "ops.example.com:443", "10.1.2.3"],
)
async def test_a_name_of_this_machine_or_of_the_settings_is_answered(app: tasker.App, host: str) -> None:
    assert await status(app, host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8080", "", "127.0.0.1.evil.example"]
)
async def test_another_name_is_refused_with_what_to_do(app: tasker.App, host: str) -> None:
    assert await status(app, host) == 421


async def test_where_callers_are_asked_any_name_is_answered(app: tasker.App) -> None:
    assert await status(app, "evil.example", None) == 200


async def status(app: tasker.App, host: str, names: tuple[str, ...] | None = ("ops.example.com", "10.1.2.3")) -> int:
    transport = httpx.ASGITransport(app=application(app, Options(hosts=names)))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/v1/tasks", headers={"Host": host})
    if answer.status_code == 421:
        assert answer.json()["code"] == "unknown_host"
        assert "orchestration.web.trusted_hosts" in answer.json()["hint"]
    return answer.status_code


def test_the_name_is_read_without_port_and_brackets() -> None:
    assert [host_of(text) for text in ("[::1]:80", "A.b.:1", "x", "", "[")] == ["::1", "a.b", "x", "", ""]
