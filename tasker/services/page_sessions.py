"""Sessions of the web page: rows of the database that only a browser's cookie opens."""

from __future__ import annotations

import base64
import secrets
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING

from tasker.db.connection import Statements
from tasker.db.sql_files import query

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

PAGE_SESSION_SECONDS = 12 * 3600
"""Longest time that somebody stays signed in on the web page."""

IDENTIFIER_BYTES = 32


class PageSessions:
    """Keeps sessions in `tasker.page_sessions`. Raises `DatabaseError` like every statement.

    A row has the hash of the session's identifier, and the credential, encrypted with a key that is derived from the
    identifier. The credential is checked with each request, so that a session never permits more than it.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def begin(self, credential: str, *, until: float | None) -> str:
        """Return the identifier of a new session, which ends `until` then (seconds since 1970) at the latest."""
        identifier = secrets.token_urlsafe(IDENTIFIER_BYTES)
        params = {
            "hash": _hash_of(identifier),
            "sealed": _seal_of(identifier).encrypt(credential.encode()),
            "seconds": PAGE_SESSION_SECONDS,
            "until": until,
        }
        await self._connection.execute(query("page_sessions", "begin"), params)
        return identifier

    async def credential(self, identifier: str) -> str | None:
        """Return the API key or token of a session, or None if there is no such session any more."""
        rows = await self._connection.execute(query("page_sessions", "sealed"), {"hash": _hash_of(identifier)})
        return _seal_of(identifier).decrypt(bytes(rows[0][0])).decode() if rows else None

    async def end(self, identifier: str) -> None:
        """Delete a session."""
        await self._connection.execute(query("page_sessions", "end"), {"hash": _hash_of(identifier)})


def _hash_of(identifier: str) -> bytes:
    return sha256(identifier.encode()).digest()


def _seal_of(identifier: str) -> Fernet:
    from cryptography.fernet import Fernet  # comes with the web page, and not with a worker

    key = blake2b(identifier.encode(), digest_size=32, person=b"tasker session").digest()
    return Fernet(base64.urlsafe_b64encode(key))
