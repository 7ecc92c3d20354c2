"""Evaluation of tasks named in the queue `orchestration_task_finalizations`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tasker.db.connection import DataRefused
from tasker.db.sql_files import query
from tasker.engine.answers import EvaluateAnswer
from tasker.engine.bisect import halved
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker, OnAdvanced
from tasker.engine.task_log import read_task_ids
from tasker.errors import TaskerError, TaskNotFound
from tasker.logging.lines import log_line
from tasker.messaging.port import QueuedMessage
from tasker.orchestration.poison_guard import MOST_RECEPTIONS, PoisonGuard, exceeds_redeliveries, split_suspects
from tasker.services.submission.by_message import finalization_of

_log = logging.getLogger("tasker.orchestration")


NEVER_EVALUATED = (
    f"it was taken {MOST_RECEPTIONS} times and its task never evaluated: each process that took it ended or stood still"
    " meanwhile; see the orchestrators' logs"
)


class FinalizationConsumer:
    """Evaluates tasks from their rows, under their locks. For a task that has ended that is nothing.

    `on_advanced` gets each answer of the engine at once, even if a later step fails.
    """

    def __init__(self, engine: Engine, on_advanced: OnAdvanced = lambda _: None) -> None:
        self._engine, self._on_advanced = engine, on_advanced
        self._receptions = PoisonGuard(engine, engine.messaging.receive_task_finalizations, rows_tell=True)

    def longest_pause(self) -> float:
        """Return the seconds until messages of a crashed process are visible again."""
        return self._engine.rules.hidden_seconds

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        """Take up to `limit` messages and evaluate their tasks; return how many messages there were.

        Messages that name no task, or that the database refuses, are quarantined. Raises `DatabaseError`, after which
        the messages are delivered again.
        """
        messages = await self._receptions.take(limit)
        parts = split_suspects(messages)
        async with self._receptions.returned(lambda: [message for part in parts for message in part]):
            while parts:
                await self._evaluate(parts[0])
                await self._engine.messaging.ack_messages(parts.pop(0))
        return len(messages)

    async def _evaluate(self, messages: Sequence[QueuedMessage]) -> None:
        by_task = await self._existing_tasks(messages)

        async def settle(tasks: Sequence[str]) -> None:
            self._on_advanced(await self._engine.call_typed("evaluate", {"tasks": list(tasks)}, EvaluateAnswer))

        async def refuse(task: str, error: DataRefused) -> None:
            for message in by_task[task]:
                await self._refuse(message, error)

        await halved(sorted(by_task), settle, refuse)

    async def _existing_tasks(self, messages: Sequence[QueuedMessage]) -> dict[str, list[QueuedMessage]]:
        """Return the tasks that exist with their messages; quarantine messages of unknown tasks."""
        by_task: dict[str, list[QueuedMessage]] = {}
        for message in messages:
            if (task := await self._decoded(message)) is not None:
                by_task.setdefault(task, []).append(message)
        rows = await self._engine.connection.execute(query("tasks", "known"), {"tasks": list(by_task)})
        for task in by_task.keys() - {task for (task,) in rows}:
            for message in by_task.pop(task):
                await self._refuse(message, TaskNotFound(f"no task {task} in this database"))
        return by_task

    async def _decoded(self, message: QueuedMessage) -> str | None:
        try:
            if exceeds_redeliveries(message):
                raise TaskerError(NEVER_EVALUATED)
            return finalization_of(message.payload)
        except TaskerError as error:
            await self._refuse(message, error)
            return None

    async def _refuse(self, message: QueuedMessage, error: TaskerError) -> None:
        fields = {"id": message.message_id, "reason": error.message}
        log_line(_log, logging.WARNING, "task_finalization_refused", await self._about(message) | fields)
        await self._engine.quarantine_message(message.queue, message.message_id, message.payload, error.message)

    async def _about(self, message: QueuedMessage) -> dict[str, Any]:
        """Return the log fields of the message's task, or none if the message cannot be read."""
        try:
            task = finalization_of(message.payload)
        except TaskerError:
            return {}
        return (await read_task_ids(self._engine.connection, [task]))[task]
