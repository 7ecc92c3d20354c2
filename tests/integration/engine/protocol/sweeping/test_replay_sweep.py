"""A sweep goes on with replays of dead letters, and is not held by one that is always due."""

from __future__ import annotations

import pytest

from tasker.orchestration import dead_letters as replaying
from tests.integration.engine.protocol.conftest import Orchestra
from tests.support.engine_fixture import fail


async def test_a_sweep_replays_for_a_while_and_the_next_one_goes_on(
    orchestra: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "TURNS", 2)
    monkeypatch.setattr(replaying, "REPLAY_STEPS", 1)
    lab = orchestra.lab
    lab.submit(lab.chain(1), *({} for _ in range(5)))
    lab.one.advance(*(fail(claim) for claim in lab.one.claim()))
    lab.two.core("replay_plan", {"rate": 1000, "actor": "ann", "why": "", "limit": 10})
    lab.two.execute("update tasker.dlq_replays set paced_at = paced_at - interval '5 seconds'")

    left = []
    for _ in range(3):
        await orchestra.sweep()
        left.append(lab.observer.value("select count(*) from tasker.dlq_replay_items where outcome is null"))

    assert left == [3, 1, 0]
