"""Answers of a server before its services are ready: it is alive, all other requests get 503."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.types import Receive, Scope, Send

from tasker.api.envelope import Envelope, RequestLimits
from tasker.api.json_response import Json
from tasker.api.problems import Answering, answer, problem

LIVE = ("/live", "/health/live")
AGAIN_SECONDS = 5
"""Retry delay sent to clients; as long as the longest pause between two attempts to reach the database."""


class NotReady:
    """HTTP interface of a server from the moment it listens; `become` replaces it by the one with services."""

    def __init__(self, limits: RequestLimits, root_path: str = "", answering: Answering = answer) -> None:
        self._root_path, self._answering = root_path, answering
        self._interface = Envelope(self._early, limits, lambda: None, answering=answering)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._interface(scope, receive, send)

    def become(self, interface: Envelope) -> None:
        """Answer with this interface from now on."""
        self._interface = interface

    def close(self) -> None:
        """End endless streams."""
        self._interface.close()

    async def _early(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].removeprefix(self._root_path) in LIVE and scope["method"] == "GET":
            alive = Json({"status": "alive", "timestamp": datetime.now(UTC)})
            await alive(scope, receive, send)
            return
        message = "not ready: the server starts, or waits for its database"
        found = problem(503, message, kind="not_ready", code="SERVICE_UNAVAILABLE", retry_after=AGAIN_SECONDS)
        await self._answering(found, scope)(scope, receive, send)
