"""Dead letter service through a server, with the names of reasons and statuses converted to those of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.cli.place.decoding import decoded, decoded_list
from tasker.client.http.client import HttpClient
from tasker.services.dead_letters.entries import known
from tasker.services.dead_letters.records import (
    REASONS,
    STATUSES,
    DeadLetter,
    FailureGroup,
    QueuedInvestigation,
    ReasonStats,
    TaskHealth,
)
from tasker.services.operators.steps import RetriedSteps

WORDS = {"dlq_reason": REASONS, "resolution_status": STATUSES}


class HttpDeadLetters:
    """`tasker.services.dead_letters.entries.DeadLetters` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def list(self, **which: Any) -> Sequence[DeadLetter]:
        return [_entry(each) for each in await self._client.list_dead_letters(**which)]

    async def of_task(self, task_uuid: str) -> DeadLetter:
        return _entry(await self._client.get_dead_letter(task_uuid))

    async def entry(self, entry_uuid: str) -> DeadLetter:
        return _entry(await self._client.get_dead_letter_entry(entry_uuid))

    async def stats(self) -> Sequence[ReasonStats]:
        return [decoded(ReasonStats, _in_our_words(each)) for each in await self._client.dead_letter_stats()]

    async def queue(self, *, limit: int = 100) -> Sequence[QueuedInvestigation]:
        found = await self._client.investigation_queue(limit=limit)
        return [decoded(QueuedInvestigation, _in_our_words(each)) for each in found]

    async def staleness(self, *, limit: int = 100) -> Sequence[TaskHealth]:
        return decoded_list(TaskHealth, await self._client.staleness(limit=limit))

    async def groups(self, *, limit: int = 50) -> Sequence[FailureGroup]:
        return decoded_list(FailureGroup, await self._client.dead_letter_groups(limit=limit))

    async def open(self, task_uuid: str, **given: Any) -> DeadLetter:
        return _entry(await self._client.open_dead_letter(task_uuid, **given))

    async def update(self, entry_uuid: str, **given: Any) -> DeadLetter:
        await self._client.update_dead_letter(entry_uuid, **given)
        return await self.entry(entry_uuid)

    async def retry(self, entry_uuid: str, *, actor: str, reason: str) -> RetriedSteps:
        return decoded(RetriedSteps, await self._client.retry_dead_letter(entry_uuid, reason=reason, by=actor))


def _entry(data: Mapping[str, Any]) -> DeadLetter:
    return decoded(DeadLetter, _in_our_words(data))


def _in_our_words(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert reasons and statuses to the names of the database: `ManualDlq` is `manual_dlq`."""
    words = {name: known(data[name], among, name) for name, among in WORDS.items() if name in data}
    return {**data, **words}
