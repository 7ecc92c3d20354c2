"""Signed links: a person decides about one request without signing in, once.

A link has the task, the step, the token of the request, the person and an expiry, signed with a key of the
configuration (HMAC-SHA256). It is used up by the vote of its person, of which there can be one for each request.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Self

from tasker.dataclasses import dataclass
from tasker.errors import ApprovalNotFound, UsageError

MOST: Final = 4000
"""Characters of a link's text."""


@dataclass(frozen=True, slots=True)
class LinkClaims:
    """Permission of a link: `subject` decides about the request `token` of a step until `expires` (Unix time)."""

    task_uuid: str
    step: str
    token: int
    subject: str
    expires: int

    @classmethod
    def of(cls, encoded: bytes) -> Self:
        """Parse signed claims."""
        task_uuid, step, token, subject, expires = json.loads(encoded)
        return cls(task_uuid, step, token, subject, expires)

    @property
    def encoded(self) -> bytes:
        """Claims as they are signed."""
        values = [self.task_uuid, self.step, self.token, self.subject, self.expires]
        return json.dumps(values, separators=(",", ":")).encode()


class LinkSigner:
    """Signer of links with `keys`: the first one signs, all verify."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = [key.encode() for key in keys]

    def sign(self, claims: LinkClaims) -> str:
        """Return the text of a link. Raises `UsageError` without a key."""
        if not self._keys:
            hint = "set common.approvals.link_keys to a secret of 32 characters at least"
            raise UsageError("signed links need a key", hint=hint)
        return f"{_text(claims.encoded)}.{_text(_signature(self._keys[0], claims.encoded))}"

    def verified(self, link: str, now: datetime) -> LinkClaims:
        """Return what a link permits. Raises `ApprovalNotFound` if it is not signed here or has expired."""
        body, _, signature = link.partition(".")
        try:
            encoded, signed = _bytes(body), _bytes(signature)
        except (ValueError, binascii.Error):
            raise _invalid() from None
        matches = [hmac.compare_digest(_signature(key, encoded), signed) for key in self._keys]
        if len(link) > MOST or not any(matches):
            raise _invalid()
        claims = LinkClaims.of(encoded)
        if claims.expires <= now.timestamp():
            expired = f"{datetime.fromtimestamp(claims.expires, UTC):%Y-%m-%d %H:%M}"
            raise ApprovalNotFound(f"this link expired at {expired} UTC", hint="ask for a new one")
        return claims


def _invalid() -> ApprovalNotFound:
    return ApprovalNotFound("this link is not valid", hint="open it again from the message, or ask for a new one")


def _signature(key: bytes, encoded: bytes) -> bytes:
    return hmac.digest(key, b"tasker approval link\0" + encoded, hashlib.sha256)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"==")
