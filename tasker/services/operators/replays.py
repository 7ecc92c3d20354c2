"""Replays of dead letters with the same failure: failed steps run again at a set rate, and the entries are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tasker.db.sql_files import query
from tasker.engine.answers import ReplayAnswer
from tasker.engine.calls import Engine
from tasker.engine.exchange import REPLAY_STEPS
from tasker.errors import DeadLetterNotFound, StateMachineError, UsageError
from tasker.errors.remedies import see
from tasker.operations.dead_letters import RATES, FailureSelection, Steered
from tasker.services.audit import audited
from tasker.services.operators.dead_letters import known
from tasker.views.dead_letters import REASONS, Replay, ReplayPlan


class Replays:
    """Replays of dead letters: starting, advancing and controlling them. Every process that sweeps advances running
    ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def plan(self, group: FailureSelection) -> ReplayPlan:
        """Return what a replay of this group would do now, without starting it."""
        return await self._plan(group, {"dry_run": True, "rate": 1, "actor": "", "why": ""})

    @audited("App.replays.begin")
    async def begin(self, group: FailureSelection, *, rate: float = 10.0, actor: str, reason: str = "") -> ReplayPlan:
        """Start a replay of `rate` tasks per second. Raises `UsageError` for a rate out of bounds."""
        if not RATES[0] <= rate <= RATES[1]:
            raise UsageError(f"{rate:g} is not a valid rate in tasks per second", hint=f"{RATES[0]:g} to {RATES[1]:g}")
        return await self._plan(group, {"rate": rate, "actor": actor, "why": reason})

    async def advance(self, replay_uuid: str | None = None) -> int:
        """Replay the due tasks of this replay, or of any, wake sleeping workers, and return the number of tasks
        handled."""
        answer = await self._engine.call_typed("replay", {"replay": replay_uuid, "steps": REPLAY_STEPS}, ReplayAnswer)
        if answer.sent:
            await self._engine.wake(answer.sent)
        return answer.done

    async def list(self, *, limit: int = 50) -> Sequence[Replay]:
        """Return replays, the newest first."""
        return [Replay(*row) for row in await self._query("replays", replay=None, limit=limit)]

    async def get(self, replay_uuid: str) -> Replay:
        """Return the progress of a replay. Raises `DeadLetterNotFound`."""
        rows = await self._query("replays", replay=_checked(replay_uuid), limit=1)
        if not rows:
            raise DeadLetterNotFound(f"no replay {replay_uuid}", hint=see("tasker dlq replays"))
        return Replay(*rows[0])

    async def skipped(self, replay_uuid: str, *, limit: int = 50) -> Sequence[tuple[str, str]]:
        """Return the first tasks of which nothing was reset, each with the reason."""
        rows = await self._query("skipped", replay=_checked(replay_uuid), limit=limit)
        return [(task, detail or "") for task, detail in rows]

    @audited("App.replays.steer")
    async def steer(self, replay_uuid: str, state: Steered, *, actor: str | None = None) -> Replay:
        """Pause, resume or cancel a replay. Raises `StateMachineError` if it has ended."""
        if not await self._query("steer_replay", replay=_checked(replay_uuid), state=state):
            replay = await self.get(replay_uuid)
            raise StateMachineError(f"replay {replay_uuid} is {replay.state}: it has ended")
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
        plan = await self._engine.read("replay_plan", args)
        return ReplayPlan(plan["replay"], plan["tasks"], plan["steps"], plan["once"], plan["templates"])

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._engine.connection.execute(query("dead_letters", name), params)


def _checked(replay_uuid: str) -> str:
    try:
        return str(UUID(replay_uuid))
    except ValueError:
        raise UsageError(f"{replay_uuid!r} is not a replay's identifier", hint=see("tasker dlq replays")) from None
