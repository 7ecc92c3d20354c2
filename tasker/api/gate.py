"""Gate of a server with authentication."""

from __future__ import annotations

import logging

from fastapi import Request

from tasker.services.authentication.authenticator import Authenticator
from tasker.services.authentication.caller import AuthenticatedCaller

_log = logging.getLogger("tasker.api")


class ClosedGate:
    """Gate that admits callers whom the authenticator recognizes."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator, self._header = authenticator, authenticator.settings.api_key_header

    def change(self, authenticator: Authenticator) -> None:
        """Replace the authenticator; the name of the API key header stays the same."""
        self._authenticator = authenticator

    async def __call__(self, request: Request) -> AuthenticatedCaller:
        """Return the authenticated caller. Raises `NotAuthenticated` if the credentials are invalid."""
        headers = request.headers
        caller = await self._authenticator.caller(headers.get("authorization"), headers.get(self._header))
        _log.debug("caller_known caller=%r known_by=%s request=%s", caller.name, caller.method, _Request(request))
        return caller


class _Request:
    """Request that is formatted only when a log record shows it."""

    def __init__(self, request: Request) -> None:
        self._scope = request.scope

    def __str__(self) -> str:
        return repr(f"{self._scope['method']} {self._scope['path']}")
