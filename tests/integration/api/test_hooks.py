"""Signed requests of other systems: stored as events once, refused without a valid signature."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.errors import NotAuthenticated
from tasker.server.application import Options, application
from tasker.services.hooks import verify
from tasker.settings.hooks import IncomingHook
from tasker.template import compile_text
from tests.integration.api.program import WAITING
from tests.integration.api.test_errors import problem

KEY = b"0123456789abcdef0123456789abcdef"
STANDARD = "whsec_" + base64.b64encode(KEY).decode()
NOW = 1_800_000_000
BODY = json.dumps({"id": "evt_1", "data": {"object": {"id": "pi_7"}, "paid": True}}).encode()
HOOKS = {
    "payments": IncomingHook(namespace="nobody", event="payment.settled", key="data.object.id", secrets=("env:HOOK",)),
    "github": IncomingHook(
        namespace="nobody",
        secrets=("env:HOOK",),
        signature="body",
        header="X-Hub-Signature-256",
        prefix="sha256=",
        dedupe_header="X-GitHub-Delivery",
        max_body_bytes=1024,
    ),
    "unset": IncomingHook(namespace="nobody", secrets=("env:NO_SUCH_HOOK_SECRET",)),
    "none": IncomingHook(namespace="nobody"),
}


def signature(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def standard(body: bytes = BODY, moment: int | None = None, name: str = "msg_1", key: bytes = KEY) -> dict[str, str]:
    at = str(int(time.time()) if moment is None else moment)
    text = base64.b64encode(signature(key, b".".join((name.encode(), at.encode(), body)))).decode()
    return {"webhook-id": name, "webhook-timestamp": at, "webhook-signature": f"v1,bm9uZQ== v1,{text}"}


@pytest_asyncio.fixture(loop_scope="module")
async def client(app: tasker.App, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("HOOK", STANDARD)
    await app.plans.register(compile_text(WAITING).plans[0])
    transport = httpx.ASGITransport(app=application(app, Options(hooks=HOOKS)))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as made:
        yield made


async def test_a_signed_request_is_an_event_once(app: tasker.App, client: httpx.AsyncClient) -> None:
    first = await client.post("/v1/hooks/payments", content=BODY, headers=standard())
    again = await client.post("/v1/hooks/payments", content=BODY, headers=standard())

    assert (first.status_code, again.status_code) == (201, 200), first.text
    assert (first.json()["duplicate"], again.json()["duplicate"]) == (False, True)
    (event,) = await app.incoming_events.list(namespace="nobody", name="payment.settled", key="pi_7")
    assert (event.event_uuid, event.sent_by) == (first.json()["event_uuid"], "hook payments")


async def test_the_body_alone_may_be_signed(app: tasker.App, client: httpx.AsyncClient) -> None:
    headers = {"X-Hub-Signature-256": f"sha256={signature(STANDARD.encode(), BODY).hex()}", "X-GitHub-Delivery": "d1"}

    answer = await client.post("/v1/hooks/github", content=BODY, headers=headers)

    assert answer.status_code == 201, answer.text
    assert [event.name for event in await app.incoming_events.list(name="github")] == ["github"]


@pytest.mark.parametrize(
    ("hook", "headers"),
    [
        ("payments", {}),
        ("payments", standard(key=b"other")),
        ("payments", standard(b"{}")),
        ("payments", standard(moment=1_700_000_000)),
        ("payments", {**standard(), "webhook-id": "msg_2"}),
        ("payments", {**standard(), "webhook-timestamp": "x"}),
        ("unset", standard()),
        ("none", standard()),
        ("none", standard(key=b"")),
    ],
)
async def test_a_request_without_a_valid_signature_is_refused(
    app: tasker.App, client: httpx.AsyncClient, hook: str, headers: dict[str, str]
) -> None:
    answer = await client.post(f"/v1/hooks/{hook}", content=BODY, headers=headers)

    problem(answer, 401, "UNAUTHORIZED")
    assert "signature of the request is missing or not valid" in answer.text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"not json", "is not JSON"),
        (b"[]", "data.object.id"),
        (b'{"data": {"object": {"id": true}}}', "data.object"),
        (b'{"data": {"object": {"id": ""}}}', "data.object"),
        (b'{"data": {"object": {"id": "\\u0000"}}}', "NUL"),
        (b'{"data": {"object": {"id": "\\ud800"}}}', "surrogate"),
        (b'{"data": {"object": {"id": "a"}, "n": NaN}}', "not a JSON number"),
    ],
)
async def test_a_signed_body_that_is_no_event_is_refused(client: httpx.AsyncClient, body: bytes, message: str) -> None:
    answer = await client.post("/v1/hooks/payments", content=body, headers=standard(body))

    expected = 422 if b"NaN" in body else 400
    assert (answer.status_code, message in answer.text) == (expected, True), answer.text


async def test_unknown_hooks_and_large_bodies_are_refused(client: httpx.AsyncClient) -> None:
    problem(await client.post("/v1/hooks/other", content=BODY), 404, "NOT_FOUND")
    large = await client.post("/v1/hooks/github", content=b" " * 1025)
    assert (large.status_code, "1,024" in large.text) == (400, True)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 1025
        pytest.fail("the body is read beyond the limit of the hook")

    assert (await client.post("/v1/hooks/github", content=endless())).status_code == 400


@pytest.mark.parametrize(("secret", "key"), [("whsec_", b""), ("whsec_", b"whsec_"), ("whsec_\u00fc", b"")])
def test_a_secret_without_a_key_verifies_nothing(secret: str, key: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        verify(IncomingHook(), standard(moment=NOW, key=key), BODY, [secret], NOW)


def stripe(at: int, key: bytes = KEY) -> str:
    return f"t={at},v1={signature(key, f'{at}.'.encode() + BODY).hex()},v0=00"


@pytest.mark.parametrize("age", [0, 300, -300])
def test_times_within_the_tolerance_are_accepted(age: int) -> None:
    hook: Any = IncomingHook(signature="timestamp", header="stripe-signature")
    verify(hook, {"stripe-signature": stripe(NOW - age)}, BODY, ["old", KEY.decode()], NOW)


@pytest.mark.parametrize("text", ["", "t=1", stripe(NOW - 301), stripe(NOW + 301), stripe(NOW, b"x"), "v1=00,t=é"])
def test_other_times_and_signatures_are_refused(text: str) -> None:
    hook: Any = IncomingHook(signature="timestamp", header="Stripe-Signature")
    with pytest.raises(NotAuthenticated):
        verify(hook, {"stripe-signature": text}, BODY, [KEY.decode()], NOW)
