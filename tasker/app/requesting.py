"""Asking for tasks through the broker alone: for programs that reach it and not the database."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from tasker.app.bootstrap import require_shared
from tasker.app.configured import UNCONFIGURED, Configured
from tasker.contracts.messaging import BackendSettings, Capabilities
from tasker.db.channel import DatabaseChannel
from tasker.errors import UsageError
from tasker.lifecycle.storable import encode
from tasker.messaging.registry import load_backend
from tasker.messaging.service import MessagingService
from tasker.process.faults import with_faults
from tasker.process.system import new_task_uuid
from tasker.services.authoring.targets import registered_name
from tasker.services.submission import Request, RequestOptions
from tasker.services.task_requests import TaskRequest
from tasker.services.tasks import checked


class TaskRequester:
    """Sends requests that an orchestrator turns into tasks. Use it as `async with TaskRequester(backend) as ask:`.

    Parameters: `backend` and `backend_settings` say how to reach the broker, `database_url` is only for a backend whose
    queues live in the database; `configuration` gives what is not given here.
    """

    def __init__(
        self,
        backend: str | None = None,
        *,
        backend_settings: BackendSettings | None = None,
        database_url: str | None = None,
        configuration: Configured = UNCONFIGURED,
    ) -> None:
        name = backend or configuration.backend
        url = database_url or configuration.database_url
        settings = {**configuration.backend_settings.get(name, {}), **(backend_settings or {})}
        if url is not None:
            settings["channel"] = DatabaseChannel(url)
        self._limit = configuration.context_limit_bytes
        chosen = load_backend(name, settings)
        _require_database(name, chosen.capabilities, url)
        require_shared(
            chosen, "no orchestrator would see the request", "submit with App.submit, or choose another backend"
        )
        self._messaging = MessagingService(with_faults(chosen), configuration.queue_names)

    async def __aenter__(self) -> Self:
        """Connect. Raises `MessagingError`."""
        await self._messaging.open()
        await self._messaging.ensure_orchestration_queues()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await self._messaging.close()

    async def request(
        self,
        target: str,
        context: Mapping[str, Any] | None = None,
        *,
        task_uuid: str | None = None,
        **options: Unpack[RequestOptions],
    ) -> str:
        """Ask for a task of the registered template `namespace/name[:version]`; the identifier that it will have.

        `options` are those of `Request`. When the broker's answer was lost, ask again with the same `task_uuid`: it
        stays one task. What an orchestrator refuses (an unknown template, a context that does not fit) is listed by
        `tasker task refused`. Raises `UsageError`, `NotStorable`, `MessagingError`.
        """
        name = registered_name(target)
        task = checked(task_uuid) if task_uuid else new_task_uuid()
        message = TaskRequest(task, *name, Request(dict(context or {}), **options)).message()
        text = encode(message, limit_bytes=self._limit).text
        asked = TaskRequest.decode(text.encode())  # refused here with the words of the other side
        await self._messaging.send_task_request(message)
        return asked.task_uuid

    async def finalize(self, task_uuid: str) -> None:
        """Ask for a task to be evaluated again, from its rows; nothing happens to one that has ended (RT-12)."""
        await self._messaging.send_task_finalization({"task_uuid": checked(task_uuid)})


def _require_database(name: str, capabilities: Capabilities, url: str | None) -> None:
    if capabilities.transactional and url is None:
        raise UsageError(
            f"the queues of the {name} backend are in the database, and no database is named",
            hint="give its URL, or choose a broker with --backend; on the embedded database: tasker task submit",
        )
