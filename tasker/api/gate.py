"""The gate of a server that asks its callers who they are."""

from __future__ import annotations

import logging

from fastapi import Request

from tasker.services.authentication.authenticator import Authenticator
from tasker.services.authentication.caller import AuthenticatedCaller

_log = logging.getLogger("tasker.api")


class ClosedGate:
    """Lets callers through whom the authenticator knows."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator, self._header = authenticator, authenticator.settings.api_key_header

    def change(self, authenticator: Authenticator) -> None:
        """From now on those whom this one knows; the header of keys stays."""
        self._authenticator = authenticator

    async def __call__(self, request: Request) -> AuthenticatedCaller:
        """Who calls. Raises `NotAuthenticated`."""
        headers = request.headers
        caller = await self._authenticator.caller(headers.get("authorization"), headers.get(self._header))
        _log.debug("caller_known caller=%r known_by=%s request=%s", caller.name, caller.method, _Request(request))
        return caller


class _Request:
    """A request as text, which is made where somebody shows it."""

    def __init__(self, request: Request) -> None:
        self._scope = request.scope

    def __str__(self) -> str:
        return repr(f"{self._scope['method']} {self._scope['path']}")
