"""Keys that an issuer publishes: fetched when they are needed, and never waited for by who has a known one."""

from __future__ import annotations

import asyncio
import logging
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from tasker.errors import NotAuthenticated
from tasker.server.auth import verification_keys as asking
from tasker.server.auth.tokens import TokenReader
from tasker.server.auth.verification_keys import AGAIN_SECONDS, PublishedKeys, generate
from tasker.settings.http import Auth
from tests.unit.services.authentication.test_tokens import claims

URL, REFRESH_SECONDS = "https://issuer.example.com/keys", 3600


@cache
def pair(name: str) -> tuple[str, str]:
    return generate(1024 if name == "weak" else 2048)


class Issuer:
    """Publishes keys. A fetch hangs while `answers` is not set, and fails with `failure`."""

    def __init__(self) -> None:
        self.now, self.asked = 1000.0, 0
        self.published: list[Any] = []
        self.failure: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.keys = PublishedKeys(URL, REFRESH_SECONDS, self.fetch)
        self._reader = TokenReader(self.keys, Auth(enabled=True))

    def publish(self, *names: str) -> None:
        self.published = [{"kty": "EC", "kid": "other"}, *map(jwk, names)]

    async def fetch(self, url: str) -> Any:
        self.asked += 1
        await self.answers.wait()
        if self.failure is not None:
            raise self.failure
        return {"keys": self.published}

    async def caller(self, name: str, kid: str | None = "") -> str:
        headers = {} if kid is None else {"kid": kid or name}
        return (await self._reader.caller(jwt.encode(claims(), pair(name)[0], "RS256", headers=headers))).name

    async def refreshed(self) -> None:
        while self.keys._refreshing is None or not self.keys._refreshing.done():
            await asyncio.sleep(0)


def jwk(name: str) -> dict[str, Any]:
    key = load_pem_public_key(pair(name)[1].encode())
    assert isinstance(key, RSAPublicKey)
    return {**jwt.algorithms.RSAAlgorithm.to_jwk(key, as_dict=True), "kid": name}


@pytest.fixture
async def issuer(monkeypatch: pytest.MonkeyPatch) -> Issuer:
    made = Issuer()
    monkeypatch.setattr("tasker.server.auth.verification_keys.monotonic", lambda: made.now)
    made.publish("one")
    return made


async def test_keys_are_fetched_once_and_again_for_an_unknown_one(issuer: Issuer) -> None:
    assert await asyncio.gather(*(issuer.caller("one") for _ in range(5))) == ["ada"] * 5
    assert issuer.asked == 1

    issuer.publish("one", "two")
    for _ in range(3):  # made-up ids do not make this server ask and ask
        with pytest.raises(NotAuthenticated, match="signing key not found"):
            await issuer.caller("two")
    assert issuer.asked == 1
    issuer.now += AGAIN_SECONDS
    assert await issuer.caller("two") == "ada"
    assert issuer.asked == 2
    for kid in ("one", None):
        with pytest.raises(NotAuthenticated):
            await issuer.caller("two", kid)


async def test_known_key_does_not_wait_for_an_issuer_that_hangs(issuer: Issuer) -> None:
    assert await issuer.caller("one") == "ada"
    issuer.answers.clear()
    issuer.now += REFRESH_SECONDS
    for _ in range(3):
        assert await issuer.caller("one") == "ada"
    unknown = asyncio.create_task(issuer.caller("two"))
    while issuer.asked < 2:
        await asyncio.sleep(0)
    assert await issuer.caller("one") == "ada"
    issuer.publish("two")
    issuer.answers.set()
    assert await unknown == "ada"
    assert issuer.asked == 2
    with pytest.raises(NotAuthenticated, match="signing key not found"):  # withdrawn by its issuer
        await issuer.caller("one")


async def test_keys_that_nobody_refreshed_for_long_are_refreshed_before_they_count(issuer: Issuer) -> None:
    assert await issuer.caller("one") == "ada"
    issuer.publish("two")
    issuer.now += 2 * REFRESH_SECONDS
    with pytest.raises(NotAuthenticated, match="signing key not found"):
        await issuer.caller("one")


async def test_former_keys_count_while_the_issuer_is_away_and_the_log_says_why(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tasker.api")
    assert await issuer.caller("one") == "ada"
    issuer.failure = TimeoutError("no complete response within 5 seconds")
    issuer.now += REFRESH_SECONDS
    for number in range(2, 5):
        assert await issuer.caller("one") == "ada"
        await issuer.refreshed()
        assert issuer.asked == number
        issuer.now += AGAIN_SECONDS
    issuer.failure = None
    assert await issuer.caller("one") == "ada"
    await issuer.refreshed()
    assert caplog.messages == [
        f"issuer_keys_unavailable url={URL} keys_in_use=1: TimeoutError: no complete response within 5 seconds",
        f"issuer_keys_available url={URL}",
    ]


async def test_known_key_does_not_wait_for_an_issuer_that_failed_before(issuer: Issuer) -> None:
    assert await issuer.caller("one") == "ada"
    issuer.failure = TimeoutError("no complete response within 5 seconds")
    issuer.now += REFRESH_SECONDS
    assert await issuer.caller("one") == "ada"
    await issuer.refreshed()
    issuer.answers.clear()
    issuer.now += 2 * REFRESH_SECONDS
    caller = asyncio.create_task(issuer.caller("one"))
    while issuer.asked < 3:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert caller.done()
    assert await caller == "ada"
    issuer.answers.set()
    await issuer.refreshed()


async def test_key_that_cannot_be_used_does_not_void_the_others(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.publish("weak", "one")
    broken = [{"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"}, {"kty": "RSA", "kid": "number", "n": 5, "e": 3}]
    issuer.published += [*broken, {"kty": "RSA", "kid": "empty"}, 5]
    assert await issuer.caller("one") == "ada"
    with pytest.raises(NotAuthenticated, match="signing key not found"):
        await issuer.caller("one", "weak")
    told = [each.partition(":")[0] for each in caplog.messages]
    assert told == [f"issuer_key_ignored kid='{kid}'" for kid in ("weak", "broken", "number", "empty")]
    assert "1024 bits" in caplog.messages[0]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(transport: object, request: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("httpx.AsyncHTTPTransport.handle_async_request", answer)
    monkeypatch.setattr(asking, "FETCH_SECONDS", 0.01)


async def test_fetch_that_hangs_ends_with_a_reason(hanging: None) -> None:
    with pytest.raises(TimeoutError, match=r"no complete response within 0\.01 seconds"):
        await asking.fetched("http://localhost:1/keys")


async def test_issuer_in_a_private_network_is_not_asked_and_its_tokens_are_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def look_up(loop: object, host: str, port: int, **kind: object) -> list[tuple[Any, ...]]:
        return [(2, 1, 6, "", ("10.0.0.7", port))]

    monkeypatch.setattr("asyncio.BaseEventLoop.getaddrinfo", look_up)
    monkeypatch.setattr(asking, "getproxies", dict)
    with pytest.raises(NotAuthenticated):
        await PublishedKeys(URL, REFRESH_SECONDS).key("one")
    assert "UsageError: issuer.example.com of jwks_url resolves to 10.0.0.7" in caplog.text
