"""Limits of submissions over HTTP: 429 with the time to try again, which the client's error has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.client.errors import error_of
from tasker.errors import QuotaExceeded
from tasker.server.application import Options, application
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate
from tasker.settings.http import ApiKeyEntry, Auth, OrchestrationWeb
from tasker.settings.tenants import TenantQuota
from tasker.template import compile_text
from tests.integration.api.program import WAITING
from tests.integration.api.test_access import by
from tests.integration.api.test_errors import problem

KEYS = tuple(ApiKeyEntry(key=name, permissions=("*",), name=name) for name in ("one", "another"))
WAITS = {"namespace": "nobody", "name": "waiting"}


@pytest_asyncio.fixture(loop_scope="module")
async def guarded(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    tenants, http = {"default": TenantQuota(max_open_tasks=1)}, OrchestrationWeb(max_submits_per_minute=3)
    configuration = replace(UNCONFIGURED, tenants=tenants, http=http)
    async with tasker.App(database_url, work=False, configuration=configuration) as app:
        await app.plans.register(compile_text(WAITING).plans[0])
        gate = ClosedGate(Authenticator(Auth(enabled=True, api_keys_enabled=True, api_keys=KEYS)))
        transport = httpx.ASGITransport(app=application(app, Options(configuration={}), gate))
        async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as client:
            yield client


@pytest.mark.asyncio(loop_scope="module")
async def test_a_client_beyond_its_limit_is_told_when_to_try_again(guarded: httpx.AsyncClient) -> None:
    for _ in range(3):
        assert (await guarded.post("/v1/tasks", json=WAITS, headers=by("one"))).status_code == 201
    refused = await guarded.post("/v1/tasks", json=WAITS, headers=by("one"))

    problem(refused, 429, "QUOTA_EXCEEDED", "quota_exceeded")
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    error = error_of(429, refused.json(), float(refused.headers["Retry-After"]))
    assert isinstance(error, QuotaExceeded)
    assert error.hint == f"submit again in {refused.headers['Retry-After']} s"
    assert (await guarded.post("/v1/tasks", json=WAITS, headers=by("another"))).status_code == 201


@pytest.mark.asyncio(loop_scope="module")
async def test_a_batch_beyond_a_quota_has_the_refusal_for_each_and_the_longest_wait(
    guarded: httpx.AsyncClient,
) -> None:
    tasks = [{**WAITS, "tenant": "acme"}] * 2
    answer = await guarded.post("/v1/tasks/batch", json={"tasks": tasks}, headers=by("one"))

    assert [each["status"] for each in answer.json()["results"]] == [429, 429]
    assert answer.headers["Retry-After"] == "10"
