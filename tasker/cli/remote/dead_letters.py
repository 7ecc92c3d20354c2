"""Dead letters and replays of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from tasker.cli.remote.decoding import decoded, decoded_list
from tasker.client.http_client import HttpClient
from tasker.services.operators.dead_letters import known
from tasker.services.operators.replays import FailureSelection, Replay, ReplayPlan, Steered
from tasker.services.operators.steps import RetriedSteps
from tasker.views.dead_letters import (
    REASONS,
    STATUSES,
    DeadLetter,
    FailureGroup,
    QueuedInvestigation,
    ReasonStats,
    TaskHealth,
)


class DeadLetterService(Protocol):
    """Methods of `tasker.services.operators.dead_letters.DeadLetters`, documented there."""

    async def of_task(self, task_uuid: str) -> DeadLetter: ...
    async def entry(self, entry_uuid: str) -> DeadLetter: ...
    async def stats(self) -> Sequence[ReasonStats]: ...
    async def queue(self, *, limit: int = 100) -> Sequence[QueuedInvestigation]: ...
    async def staleness(self, *, limit: int = 100) -> Sequence[TaskHealth]: ...
    async def groups(self, *, limit: int = 50) -> Sequence[FailureGroup]: ...
    async def open(
        self,
        task_uuid: str,
        *,
        actor: str,
        notes: str | None = None,
        reason: str = "manual_dlq",
        metadata: Mapping[str, Any] | None = None,
    ) -> DeadLetter: ...
    async def update(
        self,
        entry_uuid: str,
        *,
        status: str | None = None,
        notes: str | None = None,
        by: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> DeadLetter: ...
    async def retry(self, entry_uuid: str, *, actor: str, reason: str) -> RetriedSteps: ...
    async def list(
        self,
        *,
        status: str | None = None,
        reason: str | None = None,
        namespace: str | None = None,
        template: str | None = None,
        fingerprint: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[DeadLetter]: ...


class ReplayService(Protocol):
    """Methods of `tasker.services.operators.replays.Replays`, documented there."""

    async def plan(self, group: FailureSelection) -> ReplayPlan: ...
    async def begin(
        self, group: FailureSelection, *, rate: float = 10.0, actor: str, reason: str = ""
    ) -> ReplayPlan: ...
    async def advance(self, replay_uuid: str | None = None) -> int: ...
    async def list(self, *, limit: int = 50) -> Sequence[Replay]: ...
    async def get(self, replay_uuid: str) -> Replay: ...
    async def steer(self, replay_uuid: str, state: Steered) -> Replay: ...


WORDS = {"dlq_reason": REASONS, "resolution_status": STATUSES}


class HttpDeadLetters:
    """`tasker.services.operators.dead_letters.DeadLetters` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def list(self, **which: Any) -> Sequence[DeadLetter]:
        return [_entry(entry) for entry in await self._client.list_dead_letters(**which)]

    async def of_task(self, task_uuid: str) -> DeadLetter:
        return _entry(await self._client.get_dead_letter(task_uuid))

    async def entry(self, entry_uuid: str) -> DeadLetter:
        return _entry(await self._client.get_dead_letter_entry(entry_uuid))

    async def stats(self) -> Sequence[ReasonStats]:
        return [
            decoded(ReasonStats, _in_our_words(reason_stats)) for reason_stats in await self._client.dead_letter_stats()
        ]

    async def queue(self, *, limit: int = 100) -> Sequence[QueuedInvestigation]:
        investigations = await self._client.investigation_queue(limit=limit)
        return [decoded(QueuedInvestigation, _in_our_words(investigation)) for investigation in investigations]

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


class HttpReplays:
    """`tasker.services.operators.replays.Replays` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def plan(self, group: FailureSelection) -> ReplayPlan:
        return decoded(ReplayPlan, await self._client.begin_replay(_which(group), dry_run=True))

    async def begin(self, group: FailureSelection, *, rate: float = 10.0, actor: str, reason: str = "") -> ReplayPlan:
        answer = await self._client.begin_replay(_which(group), rate=rate, actor=actor, note=reason)
        return decoded(ReplayPlan, answer)

    async def advance(self, replay_uuid: str | None = None) -> int:
        """Do nothing: workers and orchestrators advance the replay."""
        return 0

    async def list(self, *, limit: int = 50) -> Sequence[Replay]:
        return decoded_list(Replay, await self._client.list_replays(limit=limit))

    async def get(self, replay_uuid: str) -> Replay:
        return decoded(Replay, await self._client.get_replay(replay_uuid))

    async def steer(self, replay_uuid: str, state: Steered) -> Replay:
        return decoded(Replay, await self._client.steer_replay(replay_uuid, state))


def _which(group: FailureSelection) -> dict[str, Any]:
    since = group.since.isoformat() if group.since else None
    which = {**asdict(group), "since": since}
    return {**which, "all": not any(which[name] for name in which if name != "limit")}
