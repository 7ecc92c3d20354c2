"""Asking for tasks by message: what an orchestrator makes of it is in its database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from tasker.lifecycle.storable import encode
from tasker.messaging.service import MessagingService
from tasker.services.authoring.targets import registered_name
from tasker.services.submitting.submission import Request, RequestOptions
from tasker.services.submitting.task_requests import TaskRequest
from tasker.services.tasks import checked


class Requesting:
    """The messages that ask orchestrators. Contexts have at most `limit_bytes`; `new_task_uuid` makes identifiers."""

    def __init__(self, messaging: MessagingService, new_task_uuid: Callable[[], str], limit_bytes: int) -> None:
        self._messaging, self._new_task_uuid, self._limit = messaging, new_task_uuid, limit_bytes

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
        task = checked(task_uuid) if task_uuid else self._new_task_uuid()
        message = TaskRequest(task, *name, Request(dict(context or {}), **options)).message()
        text = encode(message, limit_bytes=self._limit).text
        asked = TaskRequest.decode(text.encode())  # refused here with the words of the other side
        await self._messaging.send_task_request(message)
        return asked.task_uuid

    async def finalize(self, task_uuid: str) -> None:
        """Ask for a task to be evaluated again, from its rows; nothing happens to one that has ended (RT-12)."""
        await self._messaging.send_task_finalization({"task_uuid": checked(task_uuid)})
