"""Endpoints of a fleet through its server, to which the plugin adds routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tasker.client.calls.operations import decoded, decoded_list
from tasker.client.calls.paths import path
from tasker.client.http_client import HttpClient
from tasker.services.event_subscriptions import Delivery
from tasker_webhooks.endpoints import EndpointStatus, Replayed, Switched, Tested

ENDPOINTS = "/plugins/webhooks/endpoints"
T = TypeVar("T")


class HttpEndpoints:
    """Endpoints of the server's settings, with the methods of `tasker_webhooks.endpoints.EndpointsHere`."""

    def __init__(self, client: HttpClient) -> None:
        self._connection = client.connection

    async def list(self) -> Sequence[EndpointStatus]:
        return decoded_list(EndpointStatus, await self._connection.get(ENDPOINTS))

    async def aside(self, name: str) -> Sequence[Delivery]:
        return decoded_list(Delivery, await self._connection.get(path(ENDPOINTS, name, "aside")))

    async def test(self, name: str) -> Tested:
        """Post a test event from the server."""
        return await self._done(Tested, name, "test", {})

    async def replay(self, name: str, events: Sequence[str]) -> Replayed:
        return await self._done(Replayed, name, "replay", {"events": list(events)})

    async def disable(self, name: str, *, actor: str, reason: str) -> Switched:
        return await self._done(Switched, name, "disable", {"actor": actor, "reason": reason})

    async def enable(self, name: str, *, actor: str) -> Switched:
        return await self._done(Switched, name, "enable", {"actor": actor})

    async def _done(self, kind: type[T], name: str, action: str, body: dict[str, Any]) -> T:
        return decoded(kind, await self._connection.send("POST", path(ENDPOINTS, name, action), body=body))
