"""A Tasker server's tasks and fleet, for programs that run on an event loop."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tasker.client.http.connection import HttpConnection
from tasker.client.http.dead_letter_calls import DeadLetterCalls
from tasker.client.http.domain_event_calls import DomainEventCalls
from tasker.client.http.fleet_calls import FleetCalls
from tasker.client.http.operator_calls import OperatorCalls
from tasker.client.http.retries import Retries
from tasker.client.http.server import ServerAddress
from tasker.client.http.step_calls import StepCalls
from tasker.client.http.task_calls import TaskCalls
from tasker.client.http.template_calls import TemplateCalls
from tasker.contracts.defaults.http import CLIENT_TIMEOUT_MS


class HttpClient(TaskCalls, StepCalls, TemplateCalls, FleetCalls, DeadLetterCalls, DomainEventCalls, OperatorCalls):
    """Asks a Tasker server. Use it as `async with HttpClient("http://localhost:8080") as client:`.

    `url` names the server, with the path below which a proxy offers it; `token` or `api_key` say who asks; `ca_file`
    has the certificates to trust in place of the system's. An answer may take `timeout` seconds. What only reads, and
    creating a task with an idempotency key, is repeated as `retries` say. Raises what `tasker.App` raises, and
    `ServerUnreachable`, `RequestTimeout`, `NotTasker`, `NotAuthenticated`, `NotPermitted`, `TooManyRequests`.
    """

    def __init__(
        self,
        url: str | ServerAddress,
        *,
        token: str | None = None,
        api_key: str | None = None,
        ca_file: Path | None = None,
        initiator: str = "tasker-client",
        source_system: str = "tasker",
        timeout: float = CLIENT_TIMEOUT_MS / 1000,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        server = url if isinstance(url, ServerAddress) else ServerAddress(url, token, api_key, ca_file)
        self.connection = HttpConnection(server, timeout=timeout, retries=retries, transport=transport)
        self.initiator, self.source_system = initiator, source_system

    async def __aenter__(self) -> Self:
        """Nothing is asked yet: the first request connects."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the connections."""
        await self.close()

    async def close(self) -> None:
        """End the connections. May be called twice."""
        await self.connection.close()
