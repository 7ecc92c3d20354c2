"""JSON Web Tokens, signed with RS256 only."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.errors import NotAuthenticated
from tasker.operations.permissions import grants_of
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.server.auth.verification_keys import VerificationKeys
from tasker.settings.http import Auth

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

ALGORITHM = "RS256"
NAMESPACES = "namespaces"
"""Claim that restricts a token to namespaces; `worker_namespaces` is the published name of the same claim."""
TENANTS = "tenants"
"""Claim that restricts a token to the tasks of tenants."""
REQUIRED = ("sub", "exp", "iss", "aud")
LONGEST_BYTES, LONGEST_NAME = 16_384, 255
LEEWAY_SECONDS = 10.0
"""Tolerated difference between the clocks of issuer and server."""
_log = logging.getLogger("tasker.api")


@dataclass(frozen=True, slots=True)
class TokenOrder:
    """Contents of a new token. No `namespaces` means all, and so do no `tenants`."""

    subject: str
    permissions: Sequence[str]
    hours: int
    namespaces: Sequence[str] = ()
    key_id: str | None = None
    tenants: Sequence[str] = ()


def sign(order: TokenOrder, key: RSAPrivateKey, settings: Auth) -> str:
    """Return a signed token for the issuer and audience of the settings."""
    import jwt

    now = int(time())
    claims = {
        "sub": order.subject,
        "iss": settings.jwt_issuer,
        "aud": settings.jwt_audience,
        "iat": now,
        "exp": now + order.hours * 3600,
        settings.permissions_claim: list(order.permissions),
        **({NAMESPACES: list(order.namespaces)} if order.namespaces else {}),
        **({TENANTS: list(order.tenants)} if order.tenants else {}),
    }
    return jwt.encode(claims, key, ALGORITHM, headers={"kid": order.key_id} if order.key_id else None)


class TokenReader:
    """Reader that identifies callers by their tokens."""

    def __init__(self, keys: VerificationKeys, settings: Auth) -> None:
        self._keys, self._settings = keys, settings

    async def caller(self, token: str) -> AuthenticatedCaller:
        """Return the caller of a token.

        Raises `NotAuthenticated` if it is malformed, forged, expired or for another audience.
        """
        claims = await self.claims(token)
        permissions = _texts(claims, self._settings.permissions_claim)
        grants, unknown = grants_of(permissions)
        if unknown:
            self._object(_subject(claims), unknown)
        tenants = frozenset(_texts(claims, TENANTS)) if TENANTS in claims else None
        return AuthenticatedCaller(_subject(claims), grants, "jwt", _confined(claims), float(claims["exp"]), tenants)

    async def claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token after verifying its signature, lifetime, issuer and audience."""
        import jwt

        if len(token) > LONGEST_BYTES:
            raise NotAuthenticated(f"Invalid token: longer than {LONGEST_BYTES} bytes")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") != ALGORITHM:  # before any key is fetched
                raise jwt.InvalidAlgorithmError(f"not signed with {ALGORITHM}")
            key = await self._keys.key(header.get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                [ALGORITHM],
                {"require": [*REQUIRED]},
                audience=self._settings.jwt_audience,
                issuer=self._settings.jwt_issuer,
                leeway=LEEWAY_SECONDS,
            )
        except jwt.ExpiredSignatureError:
            raise NotAuthenticated("Token expired", reason="expired", hint="get a new one") from None
        except jwt.InvalidTokenError as error:
            raise NotAuthenticated(f"Invalid token: {error}") from None
        return claims

    def _object(self, subject: str, unknown: Sequence[str]) -> None:
        names = ", ".join(permission if permission.isprintable() else ascii(permission) for permission in unknown)
        if self._settings.strict_validation:
            raise NotAuthenticated(f"Unknown permissions: {names}", reason="unknown_permissions")
        if self._settings.log_unknown_permissions:
            _log.warning("the token of %r has unknown permissions: %s", subject, names)


def _subject(claims: Mapping[str, Any]) -> str:
    """Return the subject, validated because it is stored in the database and written into logs."""
    subject: str = claims["sub"]
    if not 1 <= len(subject) <= LONGEST_NAME or not subject.isprintable():
        raise NotAuthenticated(f"Invalid token: sub is not a name of 1 to {LONGEST_NAME} printable characters")
    return subject


def _confined(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the allowed namespaces; an empty list means none in our claim, but all in the published one."""
    if NAMESPACES in claims:
        return frozenset(_texts(claims, NAMESPACES))
    return frozenset(_texts(claims, "worker_namespaces")) or None


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    texts = claims.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise NotAuthenticated(f"Invalid token: {name} is not a list of texts")
    return texts
