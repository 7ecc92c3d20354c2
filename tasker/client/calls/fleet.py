"""Workers, queues, pauses, analytics and health over HTTP."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection
from tasker.client.responses import HealthResponse

PAUSES = "/v1/pauses"


class Target(TypedDict, total=False):
    """Target of a pause, one of these: a template is `NS/NAME`, a step `NS/NAME/STEP`."""

    namespace: str | None
    template: str | None
    step: str | None
    task: str | None
    queue: str | None


class Scaling(TypedDict, total=False):
    """Thresholds of the scaling recommendation; the server has a default for each."""

    min_workers: int
    max_workers: int
    scale_up_depth: int
    scale_down_depth: int
    steps_per_worker: int
    clear_within_seconds: float
    cooldown_seconds: float


class FleetCalls:
    """Calls of the fleet and of the server itself. Lists are plain data as described by the OpenAPI document."""

    connection: HttpConnection
    initiator: str

    async def list_workers(self, *, stopped: bool = False) -> list[dict[str, Any]]:
        """Return every registered process; with `stopped` also those that have ended."""
        answer = await self.connection.get("/v1/workers", {"stopped": stopped})
        return list(answer["workers"])

    async def list_handlers(self, namespace: str | None = None, name: str | None = None) -> list[dict[str, Any]]:
        """Return the handlers of live workers: all of them, those of a namespace, or one."""
        parts = [part for part in (namespace, name) if part is not None]
        return list((await self.connection.get(path("/v1/handlers", *parts)))["handlers"])

    async def list_queues(self) -> dict[str, Any]:
        """Return the queues of the messaging backend beside the counts that the database expects."""
        return dict(await self.connection.get("/v1/queues"))

    async def list_limits(self, name: str | None = None, *, keys: int = 20) -> list[dict[str, Any]]:
        """Return the limits, or the one of this name, with what runs and waits under each and up to `keys` keys."""
        return list((await self.connection.get("/v1/limits", {"name": name, "keys": keys}))["limits"])

    async def list_pauses(self, *, log: int = 20) -> dict[str, Any]:
        """Return the pauses in effect, and the newest `log` entries of the log of pauses and resumes."""
        return dict(await self.connection.get(PAUSES, {"log": log}))

    async def pause(self, *, reason: str = "", actor: str | None = None, **target: Unpack[Target]) -> bool:
        """Pause the target: none of its steps start. Return False if it is paused already. Raises as `App.pause`."""
        body = {**target, "reason": reason, "actor": actor or self.initiator}
        return bool((await self.connection.send("POST", PAUSES, body=body))["paused"])

    async def resume(self, *, reason: str = "", actor: str | None = None, **target: Unpack[Target]) -> int | None:
        """Resume a target, named as in `pause`.

        Return how many ready steps (for a queue: messages) were waiting, or None if the target was not paused.
        """
        params = {**target, "reason": reason, "actor": actor or self.initiator}
        held: int | None = (await self.connection.send("DELETE", PAUSES, params=params))["held"]
        return held

    async def performance(self, *, hours: int = 1) -> dict[str, Any]:
        """Return rates and averages of the tasks that were submitted in the last `hours`."""
        return dict(await self.connection.get("/v1/analytics/performance", {"hours": hours}))

    async def template_history(self, namespace: str, name: str) -> list[dict[str, Any]]:
        """Return statistics of each version of a template, in the order of registration."""
        return list(await self.connection.get(path("/v1/analytics/templates", namespace, name)))

    async def bottlenecks(self, *, hours: int = 24, limit: int = 10, min_executions: int = 5) -> dict[str, Any]:
        """Return the slowest steps and templates among those with at least `min_executions` executions."""
        params = {"hours": hours, "limit": limit, "min_executions": min_executions}
        return dict(await self.connection.get("/v1/analytics/bottlenecks", params))

    async def scaling(self, **settings: Unpack[Scaling]) -> list[dict[str, Any]]:
        """Return the recommended number of workers of each namespace, with the reason."""
        return list(await self.connection.get("/v1/analytics/scaling", {**settings}))

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
