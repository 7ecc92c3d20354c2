"""Task requests through the broker alone, for programs that cannot reach the database."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tasker.app.configured import UNCONFIGURED, Configured
from tasker.app.preparation import require_shared
from tasker.clock import new_task_uuid
from tasker.db.channel import DatabaseChannel
from tasker.errors import UsageError
from tasker.messaging.backends import load_backend
from tasker.messaging.port import Capabilities
from tasker.messaging.service import MessagingService
from tasker.process.connections import with_faults
from tasker.services.submission.by_message import TaskRequestSender
from tasker.settings.addresses import BackendSettings


class TaskRequester(TaskRequestSender):
    """Sender of requests that an orchestrator turns into tasks. Use it as `async with TaskRequester(backend) as ask:`.

    Parameters: `backend` and `backend_settings` select the broker; `database_url` is only for a backend whose queues
    live in the database; `configuration` supplies what is not given here.
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
        chosen = load_backend(name, settings)
        _require_database(name, chosen.capabilities, url)
        require_shared(
            chosen, "no orchestrator would see the request", "submit with App.submit, or choose another backend"
        )
        messaging = MessagingService(with_faults(chosen), configuration.queue_names)
        super().__init__(messaging, new_task_uuid, configuration.context_limit_bytes)

    async def __aenter__(self) -> Self:
        """Connect. Raises `MessagingError`."""
        await self._messaging.open()
        await self.prepare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await self._messaging.close()


def _require_database(name: str, capabilities: Capabilities, url: str | None) -> None:
    if capabilities.transactional and url is None:
        raise UsageError(
            f"the queues of the {name} backend are in the database, and no database is named",
            hint="give its URL, or choose a broker with --backend; on the embedded database: tasker task submit",
        )
