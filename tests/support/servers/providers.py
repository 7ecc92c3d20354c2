"""Messaging providers as commands and processes find them: through a configuration file of the test's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import tasker
from tasker.errors import MessagingError
from tasker.messaging import MessagingService, load_backend
from tasker.services.submission.submit import Submission, SubmissionResult
from tests.support.servers import brokers


class Providers:
    """Settings by provider, under names that no other test uses; `remove` leaves nothing on shared servers."""

    def __init__(self, file: Path, queue: str) -> None:
        self.file, self._queue = file, queue
        self.settings: dict[str, Mapping[str, Any]] = {}

    def need(self, *names: str) -> None:
        """Write the configuration. Skips the test where a server cannot be had."""
        self.settings = {name: brokers.engine_settings(name) for name in names}
        lines = []
        for name, settings in self.settings.items():
            lines += [f"[common.queues.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
        self.file.write_text("\n".join(lines))

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[MessagingService]:
        """The provider, to look at and to send with; not one whose messages are in the database."""
        messaging = MessagingService(load_backend(name, self.settings[name]))
        await messaging.open()
        try:
            yield messaging
        finally:
            await messaging.close()

    def submit(self, url: str, name: str, path: Path, contexts: list[Mapping[str, Any]]) -> list[str]:
        """Create tasks whose hints go to that provider; nobody works on them here."""
        return asyncio.run(self._submit(url, name, path, contexts))

    async def _submit(self, url: str, name: str, path: Path, contexts: list[Mapping[str, Any]]) -> list[str]:
        settings = self.settings.get(name)
        async with tasker.App(url, backend=name, backend_settings=settings, work=False) as app:
            answers = await app.submit_many(path, [Submission(context) for context in contexts])
            return [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]

    def remove(self) -> None:
        """Delete what was made on the servers."""
        asyncio.run(self._remove())

    async def _remove(self) -> None:
        for name, settings in self.settings.items():
            if settings:
                async with self.open(name) as messaging:
                    for queue in (self._queue, *messaging.names.orchestration()):
                        with suppress(MessagingError):
                            await messaging.delete_queue(queue)
                    await brokers.remove_queues(messaging, settings)
