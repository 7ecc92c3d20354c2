"""The gate of a server that asks its callers who they are (F-271)."""

from __future__ import annotations

from fastapi import Request

from tasker.services.authentication.authenticator import Authenticator
from tasker.services.authentication.caller import Caller


class ClosedGate:
    """Lets callers through whom the authenticator knows."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator, self._header = authenticator, authenticator.settings.api_key_header

    def change(self, authenticator: Authenticator) -> None:
        """From now on those whom this one knows; the header of keys stays."""
        self._authenticator = authenticator

    async def __call__(self, request: Request) -> Caller:
        """Who calls. Raises `NotAuthenticated`."""
        headers = request.headers
        return await self._authenticator.caller(headers.get("authorization"), headers.get(self._header))
