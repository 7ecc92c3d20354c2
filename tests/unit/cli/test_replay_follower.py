"""A replay that is followed goes on at its rate: the follower waits for its next turn, for a second at most."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tasker.cli.commands import replays as replay


class Scripted:
    """A replay of three tasks of which a turn now and then deals with one."""

    def __init__(self, rate: float) -> None:
        self.rate, self.turns, self.done = rate, [1, 0, 1, 0, 0, 0, 1], 0

    async def get(self, replay_uuid: str) -> Any:
        state = "running" if self.turns else "complete"
        return SimpleNamespace(state=state, replayed=self.done, skipped=0, total=3, rate_per_second=self.rate)

    async def advance(self, replay_uuid: str) -> int:
        turn = self.turns.pop(0)
        self.done += turn
        return turn


@pytest.mark.parametrize(("rate", "pause"), [(10, 0.1), (1, 1.0), (0.01, 1.0)])
async def test_follower_pauses_as_long_as_one_task_takes_and_at_most_a_second(
    rate: float, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def wait(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(replay, "asyncio", SimpleNamespace(sleep=wait))
    found = await replay._follower(SimpleNamespace(replays=Scripted(rate)), "json")("replay")  # type: ignore[arg-type]

    assert (found.state, found.replayed) == ("complete", 3)
    assert pauses == [pause] * 4, "after the turns that found nothing due, and after no other"
