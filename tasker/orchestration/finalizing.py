"""Tasks that are to be evaluated again: `orchestration_task_finalizations` (B-17, B-28, B-66)."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tasker.contracts.messaging import QueuedMessage
from tasker.db.queries import query
from tasker.errors import DatabaseError, TaskerError, TaskNotFound
from tasker.services.engine import Engine
from tasker.services.exchange import Advanced, Caller
from tasker.services.task_requests import finalization_of

_log = logging.getLogger("tasker.orchestration")


class Finalizations:
    """Evaluates tasks from their rows, under their locks. For a task that has ended that is nothing (RT-12)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def longest_pause(self) -> float:
        """Seconds until messages of a crashed process are visible again."""
        return self._engine.rules.hidden_seconds

    async def receive(self, caller: Caller, limit: int) -> tuple[int, Advanced]:
        """Take up to `limit` messages and evaluate their tasks; how many messages there were.

        Raises `DatabaseError`, after which the messages come again.
        """
        messages = await self._engine.messaging.receive_task_finalizations(limit, self._engine.rules.hidden_seconds)
        advanced = Advanced()
        try:
            if tasks := await self._tasks(messages):
                advanced.add(await self._engine.call("settle", {"tasks": tasks}))
        except DatabaseError:
            await self._engine.give_back(messages)
            raise
        await self._engine.messaging.ack_messages(messages)
        return len(messages), advanced

    async def _tasks(self, messages: Sequence[QueuedMessage]) -> list[str]:
        """The tasks that exist; what names none is set aside."""
        asked = {message: task for message in messages if (task := await self._decoded(message))}
        rows = await self._engine.connection.execute(query("tasks", "known"), {"tasks": list(asked.values())})
        known = {task for (task,) in rows}
        for message, task in asked.items():
            if task not in known:
                await self._refuse(message, TaskNotFound(f"no task {task} in this database"))
        return sorted(known)

    async def _decoded(self, message: QueuedMessage) -> str | None:
        try:
            return finalization_of(message.payload)
        except TaskerError as error:
            await self._refuse(message, error)
            return None

    async def _refuse(self, message: QueuedMessage, error: TaskerError) -> None:
        _log.warning("task_finalization_refused id=%s reason=%s", message.message_id, error.message)
        await self._engine.set_aside(message.queue, message.message_id, message.payload, error.message)
