"""Who is let in by a token: signed by the right key with RS256, of the issuer, in time, with known permissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import time
from typing import Any

import httpx
import jwt
import pytest

from tasker.errors import NotAuthenticated, NotPermitted, UsageError
from tasker.operations.permissions import Grant, Permission
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.tokens import TokenOrder, sign
from tasker.server.auth.verification_keys import checked_url, fetched, generate, private_key, public_key
from tasker.settings.http import Auth

Pair = tuple[str, str]
ORDER = TokenOrder("ada", ["tasks:*", "steps:read:shop"], hours=1)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return generate(2048)


@pytest.fixture(scope="module")
def settings(pair: Pair) -> Auth:
    return Auth(enabled=True, jwt_public_key=pair[1])


def claims(**changed: Any) -> dict[str, Any]:
    """Of a good token; what is None is left out."""
    now = int(time())
    good = {"sub": "ada", "iss": "tasker-core", "aud": "tasker-api", "iat": now, "exp": now + 60, "permissions": ["*"]}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


async def caller(settings: Auth, token: str) -> Any:
    return await Authenticator(settings).caller(f"Bearer {token}", None)


async def test_a_token_of_ours_says_who_calls_and_what_they_may_where(pair: Pair, settings: Auth) -> None:
    token = sign(replace(ORDER, namespaces=["shop", "bank"]), private_key(pair[0], "key"), settings)
    found = await caller(settings, token)

    assert (found.name, found.method, found.known) == ("ada", "jwt", True)
    assert found.namespaces(Permission.TASKS_READ) == {"shop", "bank"}
    assert found.namespaces(Permission.STEPS_READ) == {"shop"}
    assert not found.may(Permission.STEPS_RESOLVE)
    with pytest.raises(NotPermitted, match="Missing required permission: steps:resolve"):
        found.require(Permission.STEPS_RESOLVE)
    with pytest.raises(NotPermitted, match="in namespace bank"):
        found.require_in(Permission.STEPS_READ, "bank")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": 1}, "Token expired"),
        ({"exp": None}, '"exp"'),
        ({"sub": None}, '"sub"'),
        ({"sub": ""}, "sub is not a name"),
        ({"sub": "a\nb"}, "sub is not a name"),
        ({"iss": "others"}, "[Ii]ssuer"),
        ({"iss": None}, '"iss"'),
        ({"aud": "worker-api"}, "[Aa]udience"),
        ({"aud": None}, '"aud"'),
        ({"permissions": "*"}, "not a list"),
        ({"permissions": [1]}, "not a list"),
        ({"permissions": ["tasks:read", "tasks:fly", "coffee"]}, "^Unknown permissions: tasks:fly, coffee$"),
        ({"namespaces": "shop"}, "not a list"),
    ],
)
async def test_a_token_that_says_something_wrong_is_refused(
    pair: Pair, settings: Auth, changed: Mapping[str, Any], reason: str
) -> None:
    with pytest.raises(NotAuthenticated, match=reason):
        await caller(settings, jwt.encode(claims(**changed), pair[0], "RS256"))


async def test_clocks_may_differ_by_some_seconds(pair: Pair, settings: Auth) -> None:
    now = int(time())
    for near in ({"exp": now - 5}, {"nbf": now + 8}, {"iat": now + 8}):
        assert (await caller(settings, jwt.encode(claims(**near), pair[0], "RS256"))).name == "ada"
    for far in ({"exp": now - 30}, {"nbf": now + 60}, {"iat": now + 60}):
        with pytest.raises(NotAuthenticated):
            await caller(settings, jwt.encode(claims(**far), pair[0], "RS256"))


async def test_nobody_gets_in_with_a_signature_that_is_not_ours(pair: Pair, settings: Auth) -> None:
    stranger, _ = generate(2048)
    good = jwt.encode(claims(), pair[0], "RS256")
    head, body, signature = good.split(".")
    forged = [
        jwt.encode(claims(), stranger, "RS256"),
        jwt.encode(claims(), None, "none"),
        _signed_with_the_public_key(pair[1]),
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        "nonsense",
        "a.b.c",
        "x" * 20_000,
    ]
    for token in forged:
        with pytest.raises(NotAuthenticated):
            await caller(settings, token)
    assert (await caller(settings, good)).name == "ada"


def _signed_with_the_public_key(public: str) -> str:
    """As if the server took the key that everybody knows for a shared secret."""
    import hmac
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    import orjson

    parts = [urlsafe_b64encode(orjson.dumps(part)).rstrip(b"=") for part in ({"alg": "HS256", "typ": "JWT"}, claims())]
    message = b".".join(parts)
    return b".".join([message, urlsafe_b64encode(hmac.digest(public.encode(), message, sha256)).rstrip(b"=")]).decode()


async def test_unknown_permissions_are_left_out_where_that_is_configured(pair: Pair, settings: Auth) -> None:
    token = jwt.encode(claims(permissions=["tasks:read", "coffee"]), pair[0], "RS256")

    found = await caller(settings.replace(strict_validation=False), token)

    assert found.grants == {Grant("tasks:read")}


async def test_the_published_claim_confines_a_token_too_and_an_empty_one_of_ours_is_nowhere(
    pair: Pair, settings: Auth
) -> None:
    async def where(**changed: Any) -> Any:
        return (await caller(settings, jwt.encode(claims(**changed), pair[0], "RS256"))).confined_to

    assert await where(worker_namespaces=["shop"]) == {"shop"}
    assert await where(worker_namespaces=[]) is None
    assert await where(namespaces=[]) == frozenset()


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example.com/k",
        "ftp://x/k",
        "https://169.254.169.254/k",
        "https://10.0.0.7/k",
        "https://[fd00::1]/k",
        "https://metadata.google.internal/k",
        "",
        "file:///k",
    ],
)
def test_keys_are_not_fetched_from_where_they_could_be_changed_or_secrets_lie(url: str) -> None:
    with pytest.raises(UsageError, match="jwks_url"):
        checked_url(url)


@dataclass
class Names:
    """Every name stands for these addresses; requests are answered without a network."""

    addresses: tuple[str, ...] = ()
    asked: list[httpx.Request] = field(default_factory=list)

    async def look_up(self, loop: object, host: str, port: int, **kind: object) -> list[tuple[Any, ...]]:
        return [(2, 1, 6, "", (address, port)) for address in self.addresses]

    async def answer(self, transport: object, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return httpx.Response(200, json={"keys": []})


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names()
    monkeypatch.setattr("asyncio.BaseEventLoop.getaddrinfo", lambda *given, **kind: found.look_up(*given, **kind))
    monkeypatch.setattr("httpx.AsyncHTTPTransport.handle_async_request", lambda *given: found.answer(*given))
    monkeypatch.setattr("tasker.server.auth.verification_keys.getproxies", dict)
    return found


@pytest.mark.parametrize(
    ("addresses", "private"),
    [
        (("10.0.0.7",), False),
        (("93.184.215.14", "127.0.0.1"), False),
        (("::ffff:192.168.0.1",), False),
        (("fec0::1",), False),
        (("3fff::1",), False),
        (("192.88.99.1",), False),
        (("64:ff9b::a00:7",), False),
        (("169.254.169.254",), True),
        (("64:ff9b::a9fe:a9fe",), True),
        (("::169.254.169.254",), True),
    ],
)
async def test_a_name_that_stands_for_a_private_address_is_not_asked(
    names: Names, addresses: tuple[str, ...], private: bool
) -> None:
    names.addresses = addresses
    with pytest.raises(UsageError, match="a private address"):
        await fetched("https://issuer.example.com/k", private=private)
    assert names.asked == []


@pytest.mark.parametrize(("address", "private"), [("93.184.215.14", False), ("10.0.0.7", True)])
async def test_the_address_that_was_checked_is_the_one_that_is_asked(names: Names, address: str, private: bool) -> None:
    names.addresses = (address,)
    assert await fetched("https://issuer.example.com:8443/k", private=private) == {"keys": []}
    (request,) = names.asked
    assert str(request.url) == f"https://{address}:8443/k"
    assert request.headers["host"] == "issuer.example.com:8443"
    assert request.extensions["sni_hostname"] == "issuer.example.com"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, "no credentials are configured"),
        ({"jwt_public_key": "nonsense"}, "jwt_public_key is not a public key"),
        ({"jwt_public_key_path": "/nowhere/key.pem"}, "cannot be read: No such file"),
        ({"jwt_verification_method": "jwks"}, "jwks_url is not set"),
    ],
)
def test_a_configuration_that_lets_nobody_in_is_refused(changed: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Authenticator(Auth(enabled=True, **changed))


def test_a_key_that_can_be_broken_is_refused() -> None:
    private, public = generate(1024)
    with pytest.raises(UsageError, match="has 1024 bits"):
        public_key(public, "key")
    with pytest.raises(UsageError, match="has 1024 bits"):
        private_key(private, "key")
