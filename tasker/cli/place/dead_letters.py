"""Dead letter services that commands use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tasker.services.dead_letters.records import (
    DeadLetter,
    FailureGroup,
    QueuedInvestigation,
    ReasonStats,
    TaskHealth,
)
from tasker.services.dead_letters.replays import FailureSelection, Replay, ReplayPlan, Steered
from tasker.services.operators.steps import RetriedSteps


class DeadLetterService(Protocol):
    """Methods of `tasker.services.dead_letters.entries.DeadLetters`, documented there."""

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
    """Methods of `tasker.services.dead_letters.replays.Replays`, documented there."""

    async def plan(self, group: FailureSelection) -> ReplayPlan: ...
    async def begin(
        self, group: FailureSelection, *, rate: float = 10.0, actor: str, reason: str = ""
    ) -> ReplayPlan: ...
    async def advance(self, replay_uuid: str | None = None) -> int: ...
    async def list(self, *, limit: int = 50) -> Sequence[Replay]: ...
    async def get(self, replay_uuid: str) -> Replay: ...
    async def steer(self, replay_uuid: str, state: Steered) -> Replay: ...
