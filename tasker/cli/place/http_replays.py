"""Dead letter replays through a server; the fleet advances them, not the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tasker.cli.place.decoding import decoded, decoded_list
from tasker.client.http.client import HttpClient
from tasker.services.dead_letters.replays import FailureSelection, Replay, ReplayPlan, Steered


class HttpReplays:
    """`tasker.services.dead_letters.replays.Replays` through a server."""

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
