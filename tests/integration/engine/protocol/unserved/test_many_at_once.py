"""Workers that lack this or that look, come and stop at the same time, on connections of their own."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.integration.engine.protocol.unserved.conftest import set_aside, submitted
from tests.support.engine_fixture import Lab
from tests.support.fleets.at_work import AtWork
from tests.support.waiting import until

NAMES = ("red", "green", "blue")


def finished(lab: Lab) -> bool:
    query = "select count(*) from tasker.tasks where namespace_id = %s and not complete"
    return lab.observer.value(query, lab.namespace_id) == 0


def lives(lab: Lab, lives_through: int, *lacks: str, seed: int) -> None:
    """A worker that starts again and again, looks a few times and stops."""
    session, chance = lab.session(), random.Random(seed)
    for _ in range(lives_through):
        worker = AtWork(lab, session, *lacks, slots=chance.randrange(1, 4))
        for _ in range(chance.randrange(3, 12)):
            worker.look()
        session.core("worker", {"action": "stop", "worker": session.worker})


@pytest.mark.parametrize("seed", range(3))
def test_workers_that_come_and_go_lose_no_step(lone_lab: Lab, seed: int) -> None:
    lab = lone_lab
    lab.window = 1 + seed
    for name, _ in itertools.product(NAMES, range(3)):
        submitted(lab, name, 5)

    lacking = [("red",), ("red", "green"), ("red", "blue"), ("red",)]
    for future in [lab.later(lives, lab, 6, *lacks, seed=seed * 10 + n) for n, lacks in enumerate(lacking)]:
        future.result(timeout=60)
    lab.check()

    last = AtWork(lab, lab.session(), slots=3)

    def worked() -> bool:
        lab.observer.execute(f"update pgmq.q_worker_{lab.namespace}_queue set vt = clock_timestamp()")
        last.work()
        return finished(lab)

    until(worked, "whoever has all handlers finishes what the others have left")
    assert set_aside(lab) == 0
    lab.check()
