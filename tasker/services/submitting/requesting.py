"""Submission by message: an orchestrator creates the task in its own database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from tasker.errors import UsageError
from tasker.lifecycle.storable import encode
from tasker.messaging.service import MessagingService
from tasker.services.authoring.targets import registered_name
from tasker.services.submitting.fitting import as_dict
from tasker.services.submitting.submission import Submission, SubmissionOptions
from tasker.services.submitting.task_requests import TaskRequestMessage
from tasker.services.tasks import checked


class TaskRequestSender:
    """Sender of task requests to orchestrators.

    Contexts are limited to `limit_bytes`; `new_task_uuid` creates task ids.
    """

    def __init__(self, messaging: MessagingService, new_task_uuid: Callable[[], str], limit_bytes: int) -> None:
        self._messaging, self._new_task_uuid, self._limit = messaging, new_task_uuid, limit_bytes
        self._prepared = False

    async def request(
        self,
        target: str,
        context: Mapping[str, Any] | None = None,
        *,
        task_uuid: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> str:
        """Request a task of the registered template `namespace/name[:version]`, and return the id that it will have.

        `options` are those of `Submission`. If the broker's answer was lost, request again with the same `task_uuid`:
        only one task is created. Requests that an orchestrator refuses (an unknown template, an invalid context) are
        listed by `tasker task refused`. Raises `UsageError`, `NotStorable`, `MessagingError`.
        """
        request = Submission({} if context is None else as_dict(context), **options)
        return await self.ask(registered_name(target), request, task_uuid)

    async def ask(
        self, template: tuple[str, str, str | None], request: Submission, task_uuid: str | None = None
    ) -> str:
        """Request a task of a template given as namespace, name and version; see `request`."""
        task = checked(task_uuid) if task_uuid else self._new_task_uuid()
        message = TaskRequestMessage(task, *template, request).message()
        text = encode(message, limit_bytes=self._limit).text
        asked = TaskRequestMessage.decode(text.encode())  # raises here the errors of the receiving side
        await self.prepare()
        await self._messaging.send_task_request(message)
        return asked.task_uuid

    async def prepare(self) -> None:
        """Create the queues, once. Raises `MessagingError`, and `UsageError` if no orchestrator can reach them."""
        if self._prepared:
            return
        if not self._messaging.backend.capabilities.shared:
            name = self._messaging.provider_name()
            raise UsageError(
                f"the {name} backend lives inside one process; no orchestrator would see the request",
                hint="submit with App.submit, or choose another backend",
            )
        await self._messaging.ensure_orchestration_queues()
        self._prepared = True

    async def finalize(self, task_uuid: str) -> None:
        """Ask for a task to be evaluated again, from its rows; nothing happens to one that has ended."""
        await self.prepare()
        await self._messaging.send_task_finalization({"task_uuid": checked(task_uuid)})
