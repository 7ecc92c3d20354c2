"""Asynchronous client of a Tasker server."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tasker.client.calls.events import DomainEventCalls
from tasker.client.calls.operators import OperatorCalls
from tasker.client.calls.server import ServerStateCalls
from tasker.client.calls.steps import StepCalls
from tasker.client.calls.tasks import TaskCalls
from tasker.client.calls.templates import TemplateCalls
from tasker.client.connection import HttpConnection, Retries
from tasker.client.servers import ServerAddress
from tasker.operations.analytics import AnalyticsOperations
from tasker.operations.approvals import ApprovalOperations
from tasker.operations.dead_letters import DeadLetterOperations
from tasker.operations.fleet import FleetOperations
from tasker.operations.schedules import ScheduleOperations
from tasker.settings.defaults import CLIENT_TIMEOUT_MS


class HttpClient(
    TaskCalls,
    StepCalls,
    TemplateCalls,
    OperatorCalls,
    ServerStateCalls,
    DomainEventCalls,
    AnalyticsOperations,
    ApprovalOperations,
    DeadLetterOperations,
    FleetOperations,
    ScheduleOperations,
):
    """Asynchronous client of a Tasker server: `async with HttpClient("http://localhost:8080") as client:`.

    `url` is the address of the server, including the path prefix of a proxy. `token` or `api_key` are the credentials.
    `ca_file` has the CA certificates to trust instead of the system's. `timeout` is the limit for a response in
    seconds. Read requests, and the creation of a task with an idempotency key, are retried according to `retries`.
    Methods raise the exceptions of `tasker.App`, and `ServerUnreachable`, `RequestTimeout`, `NotTasker`,
    `NotAuthenticated`, `NotPermitted`, `TooManyRequests`.
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
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Calling it twice is allowed."""
        await self.connection.close()
