"""The fleet over HTTP: who is at work, what waits, what is paused, how it goes, how the server does."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

from tasker.client.http.connection import HttpConnection
from tasker.client.http.paths import path
from tasker.client.responses import HealthResponse

PAUSES = "/v1/pauses"


class Target(TypedDict, total=False):
    """What is paused, one of these: a template is `NS/NAME`, a step `NS/NAME/STEP`."""

    namespace: str | None
    template: str | None
    step: str | None
    task: str | None
    queue: str | None


class Scaling(TypedDict, total=False):
    """When there should be more or fewer workers; the server has a default for each."""

    min_workers: int
    max_workers: int
    scale_up_depth: int
    scale_down_depth: int
    steps_per_worker: int
    clear_within_seconds: float
    cooldown_seconds: float


class FleetCalls:
    """What a client asks of the fleet and the server itself; lists are plain data, as the interface describes them."""

    connection: HttpConnection
    initiator: str

    async def list_workers(self, *, stopped: bool = False) -> list[dict[str, Any]]:
        """Every registered process; with `stopped` those that have ended as well."""
        answer = await self.connection.get("/v1/workers", {"stopped": stopped})
        return list(answer["workers"])

    async def list_handlers(self, namespace: str | None = None, name: str | None = None) -> list[dict[str, Any]]:
        """The handlers that live workers have: all, those of a namespace, or one of them."""
        parts = [part for part in (namespace, name) if part is not None]
        return list((await self.connection.get(path("/v1/handlers", *parts)))["handlers"])

    async def list_queues(self) -> dict[str, Any]:
        """The provider's queues beside what the database says should be in them."""
        return dict(await self.connection.get("/v1/queues"))

    async def list_pauses(self, *, log: int = 20) -> dict[str, Any]:
        """What is paused, and the newest entries of who paused and resumed what."""
        return dict(await self.connection.get(PAUSES, {"log": log}))

    async def pause(self, *, reason: str = "", actor: str | None = None, **target: Unpack[Target]) -> bool:
        """Let nothing more of the target start; False when it is paused already. Raises as `App.pause`."""
        body = {**target, "reason": reason, "actor": actor or self.initiator}
        return bool((await self.connection.send("POST", PAUSES, body=body))["paused"])

    async def resume(self, *, reason: str = "", actor: str | None = None, **target: Unpack[Target]) -> int | None:
        """End a pause, named as in `pause`; how much it held, None when it was not paused."""
        params = {**target, "reason": reason, "actor": actor or self.initiator}
        held: int | None = (await self.connection.send("DELETE", PAUSES, params=params))["held"]
        return held

    async def performance(self, *, hours: int = 1) -> dict[str, Any]:
        """Rates and averages of the tasks that were submitted within so many hours."""
        return dict(await self.connection.get("/v1/analytics/performance", {"hours": hours}))

    async def template_history(self, namespace: str, name: str) -> list[dict[str, Any]]:
        """How each version of a template has done, in the order of registration."""
        return list(await self.connection.get(path("/v1/analytics/templates", namespace, name)))

    async def bottlenecks(self, *, hours: int = 24, limit: int = 10, min_executions: int = 5) -> dict[str, Any]:
        """The slowest steps and templates of those that ran at least so often."""
        params = {"hours": hours, "limit": limit, "min_executions": min_executions}
        return dict(await self.connection.get("/v1/analytics/bottlenecks", params))

    async def scaling(self, **settings: Unpack[Scaling]) -> list[dict[str, Any]]:
        """How many workers each namespace should have, and why."""
        return list(await self.connection.get("/v1/analytics/scaling", {**settings}))

    async def health_check(self) -> HealthResponse:
        """Whether database and messaging answer."""
        return HealthResponse.from_dict(await self.connection.get("/health"))

    async def detailed_health(self) -> dict[str, Any]:
        """Pool, queues, breakers, who works."""
        return dict(await self.connection.get("/health/detailed"))

    async def is_live(self) -> bool:
        """Whether the server's process answers."""
        await self.connection.get("/live")
        return True

    async def is_ready(self) -> bool:
        """Whether requests may be sent. Raises as any call where the server, or its database, is away."""
        await self.connection.get("/ready")
        return True

    async def metrics(self) -> str:
        """The numbers of the server's process, as Prometheus reads them."""
        return str(await self.connection.get("/metrics"))

    async def configuration(self) -> dict[str, Any]:
        """What the server tells of its configuration, where it is set to tell it."""
        return dict(await self.connection.get("/config"))

    async def description(self) -> dict[str, Any]:
        """The interface as OpenAPI."""
        return dict(await self.connection.get("/openapi.json"))
