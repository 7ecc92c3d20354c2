"""Replaying dead letters that failed alike: their failed steps run again, paced, and their entries are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from tasker.contracts.dataclasses import dataclass
from tasker.db.queries import query
from tasker.errors import DeadLetterNotFound, StateMachineError, UsageError
from tasker.services.by_hand import audited
from tasker.services.dead_letters.entries import known
from tasker.services.dead_letters.records import REASONS
from tasker.services.engine.answers import ReplayAnswer
from tasker.services.engine.calls import Engine

MOST_TASKS = 100_000
"""Tasks of one replay."""
RATES = (0.001, 1000.0)
"""Bounds of the rate, in tasks per second."""
Steered = Literal["running", "paused", "cancelled"]


@dataclass(frozen=True, slots=True)
class FailureSelection:
    """Which pending entries are meant; what is None does not matter. With a fingerprint only the steps that failed so
    are reset, else every failed step."""

    fingerprint: str | None = None
    namespace: str | None = None
    template: str | None = None
    reason: str | None = None
    since: datetime | None = None
    limit: int = MOST_TASKS


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay does: so many tasks and steps; `once` are steps that are left alone, because they were lost and may
    run only once. `replay_uuid` is None when there is nothing to do, or when it was only asked for."""

    replay_uuid: str | None
    tasks: int
    steps: int
    once: int
    templates: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Replay:
    """How far a replay has come: `replayed` and `skipped` of `total` tasks; `state` is `running`, `paused`, `complete`
    or `cancelled`."""

    replay_uuid: str
    state: str
    fingerprint: str | None
    filter: Mapping[str, Any]
    rate_per_second: float
    actor: str
    reason: str
    total: int
    replayed: int
    skipped: int
    created_at: datetime
    finished_at: datetime | None


class Replays:
    """Begins replays, goes on with them, and steers them. Every process that sweeps goes on with what is running."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def plan(self, group: FailureSelection) -> ReplayPlan:
        """What a replay of this group would do now."""
        return await self._plan(group, {"dry_run": True, "rate": 1, "actor": "", "why": ""})

    @audited("App.replays.begin")
    async def begin(self, group: FailureSelection, *, rate: float = 10.0, actor: str, reason: str = "") -> ReplayPlan:
        """Begin a replay of `rate` tasks per second. Raises `UsageError` for a rate out of bounds."""
        if not RATES[0] <= rate <= RATES[1]:
            raise UsageError(f"{rate:g} tasks per second is no rate", hint=f"{RATES[0]:g} to {RATES[1]:g}")
        return await self._plan(group, {"rate": rate, "actor": actor, "why": reason})

    async def advance(self, replay_uuid: str | None = None) -> int:
        """Replay what is due of this replay, or of any; how many tasks were dealt with. Who sleeps is woken."""
        answer = await self._engine.call_typed("replay", {"replay": replay_uuid}, ReplayAnswer)
        if answer.sent:
            await self._engine.wake(answer.sent)
        return answer.done

    async def list(self, *, limit: int = 50) -> Sequence[Replay]:
        """Replays, the newest first."""
        return [Replay(*row) for row in await self._query("replays", replay=None, limit=limit)]

    async def get(self, replay_uuid: str) -> Replay:
        """How far it has come. Raises `DeadLetterNotFound`."""
        rows = await self._query("replays", replay=_checked(replay_uuid), limit=1)
        if not rows:
            raise DeadLetterNotFound(f"there is no replay {replay_uuid}", hint="see `tasker dlq replays`")
        return Replay(*rows[0])

    async def skipped(self, replay_uuid: str, *, limit: int = 50) -> Sequence[tuple[str, str]]:
        """The first tasks of which nothing was reset, and why."""
        rows = await self._query("skipped", replay=_checked(replay_uuid), limit=limit)
        return [(task, detail or "") for task, detail in rows]

    @audited("App.replays.steer")
    async def steer(self, replay_uuid: str, state: Steered) -> Replay:
        """Pause, resume or cancel it. Raises `StateMachineError` when it has ended."""
        if not await self._query("steer_replay", replay=_checked(replay_uuid), state=state):
            found = await self.get(replay_uuid)
            raise StateMachineError(f"replay {replay_uuid} is {found.state}: it has ended")
        return await self.get(replay_uuid)

    async def _plan(self, group: FailureSelection, more: Mapping[str, Any]) -> ReplayPlan:
        since = group.since.isoformat() if group.since else None
        args = {
            "fingerprint": group.fingerprint,
            "namespace": group.namespace,
            "template": group.template,
            "reason": known(group.reason, REASONS, "reason"),
            "since": since,
            "limit": group.limit,
            **more,
        }
        found = await self._engine.read("replay_plan", args)
        return ReplayPlan(found["replay"], found["tasks"], found["steps"], found["once"], found["templates"])

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("dead_letters", name), params)


def _checked(replay_uuid: str) -> str:
    try:
        return str(UUID(replay_uuid))
    except ValueError:
        raise UsageError(f"{replay_uuid!r} is not a replay's identifier", hint="see `tasker dlq replays`") from None
