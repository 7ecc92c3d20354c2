"""Health, metrics and configuration over HTTP."""

from __future__ import annotations

from typing import Any

from tasker.client.connection import HttpConnection
from tasker.client.responses import HealthResponse


class ServerStateCalls:
    """Calls of the server itself."""

    connection: HttpConnection
    initiator: str

    async def health_check(self) -> HealthResponse:
        """Return whether database and messaging respond."""
        return HealthResponse.from_dict(await self.connection.get("/health"))

    async def detailed_health(self) -> dict[str, Any]:
        """Return the health of pool, queues, circuit breakers and workers."""
        return dict(await self.connection.get("/health/detailed"))

    async def is_live(self) -> bool:
        """Return True if the server's process responds; raises otherwise."""
        await self.connection.get("/live")
        return True

    async def is_ready(self) -> bool:
        """Return True if the server accepts requests. Raises as any call if it or its database is unavailable."""
        await self.connection.get("/ready")
        return True

    async def metrics(self) -> str:
        """Return the metrics of the server's process in Prometheus text format."""
        return str(await self.connection.get("/metrics"))

    async def configuration(self) -> dict[str, Any]:
        """Return the server's configuration, if the server is set to expose it."""
        return dict(await self.connection.get("/config"))

    async def description(self) -> dict[str, Any]:
        """Return the OpenAPI document of the API."""
        return dict(await self.connection.get("/openapi.json"))
