"""Tasks that are asked for by message: `orchestration_task_requests` (B-17, B-28).

Requests for one template become tasks in one transaction; messages are acknowledged after its commit. A request that
comes again asks for the same task. One that cannot be met is set aside with the reason and holds nobody up (RT-49).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tasker.contracts.messaging import QueuedMessage
from tasker.db.connection import DataRefused
from tasker.errors import DatabaseError, Overloaded, TaskerError
from tasker.services.engine import Engine
from tasker.services.exchange import Advanced, Caller
from tasker.services.plans import PlanStore, Registered
from tasker.services.pressure import Admission
from tasker.services.submission import Draft, Drafts
from tasker.services.task_requests import TaskRequest

_log = logging.getLogger("tasker.orchestration")

Name = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be met, and its message."""

    message: QueuedMessage
    draft: Draft


class TaskRequests:
    """Turns messages into tasks. With `admission`, requests for a namespace that is full come again later."""

    def __init__(self, engine: Engine, plans: PlanStore, drafts: Drafts, admission: Admission | None = None) -> None:
        self._engine, self._plans, self._drafts, self._admission = engine, plans, drafts, admission

    async def receive(self, caller: Caller, limit: int) -> tuple[int, Advanced]:
        """Take up to `limit` messages and create their tasks; how many messages there were.

        Raises `DatabaseError`, after which the messages come again.
        """
        messages = await self._engine.messaging.receive_task_requests(limit, self._engine.rules.hidden_seconds)
        advanced = Advanced()
        try:
            for name, asked in (await self._decoded(messages)).items():
                await self._create_of(name, asked, advanced)
        except DatabaseError:
            await self._engine.give_back(messages)
            raise
        return len(messages), advanced

    async def _decoded(self, messages: Sequence[QueuedMessage]) -> dict[Name, list[tuple[QueuedMessage, TaskRequest]]]:
        """The requests by template, in the order in which they came."""
        found: dict[Name, list[tuple[QueuedMessage, TaskRequest]]] = {}
        for message in messages:
            try:
                request = TaskRequest.decode(message.payload)
            except Exception as error:  # whatever it is, it would be the same every time
                await self._refuse(message, error)
                continue
            found.setdefault((request.namespace, request.template, request.version), []).append((message, request))
        return found

    async def _create_of(
        self, name: Name, requests: Sequence[tuple[QueuedMessage, TaskRequest]], advanced: Advanced
    ) -> None:
        """All requests for one template."""
        messages = [message for message, _ in requests]
        try:
            template = await self._plans.find(*name)
            if self._admission is not None:
                await self._admission.require(template.plan, len(requests))
        except Overloaded as error:
            await self._put_off(messages, error.retry_after or 1.0)
        except DatabaseError:
            raise
        except TaskerError as error:
            for message in messages:
                await self._refuse(message, error)
        else:
            await self._create(template, await self._drafted(template, requests), advanced)

    async def _drafted(
        self, template: Registered, requests: Sequence[tuple[QueuedMessage, TaskRequest]]
    ) -> list[Asked]:
        found: list[Asked] = []
        for message, asked in requests:
            try:
                found.append(Asked(message, self._drafts.draft(template.plan, asked.request, asked.task_uuid)))
            except Exception as error:  # as above
                await self._refuse(message, error)
        return found

    async def _create(self, template: Registered, asked: Sequence[Asked], advanced: Advanced) -> None:
        """One transaction. When the database refuses the values, half of them each, until the culprit is alone."""
        once = list({each.draft.task_uuid: each.draft for each in asked}.values())
        if not once:
            return
        try:
            answer = await self._engine.call("submit", self._drafts.args(template.template_id, once))
        except DataRefused as error:
            await self._halve(template, asked, advanced, error)
            return
        advanced.add(answer)
        for known in {draft.task_uuid for draft in once} - set(answer["created"]):
            _log.info("task_requested_again task=%s template=%s", known, template.plan.name)
        await self._engine.messaging.ack_messages([each.message for each in asked])

    async def _halve(
        self, template: Registered, asked: Sequence[Asked], advanced: Advanced, error: DataRefused
    ) -> None:
        if len(asked) == 1:
            await self._refuse(asked[0].message, error)
            return
        middle = len(asked) // 2
        await self._create(template, asked[:middle], advanced)
        await self._create(template, asked[middle:], advanced)

    async def _refuse(self, message: QueuedMessage, error: Exception) -> None:
        """Kept first and acknowledged then: a crash in between keeps it twice."""
        reason = error.message if isinstance(error, TaskerError) else f"the request cannot be used: {error!r}"
        _log.warning("task_request_refused id=%s reason=%s", message.message_id, reason)
        await self._engine.set_aside(message.queue, message.message_id, message.payload, reason)
        await self._engine.messaging.ack_messages([message])

    async def _put_off(self, messages: Sequence[QueuedMessage], seconds: float) -> None:
        for message in messages:
            await self._engine.messaging.nack_message(message.queue, message.message_id, seconds)
