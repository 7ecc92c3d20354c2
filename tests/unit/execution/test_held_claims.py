"""What a worker holds is a claim, not a step: late news about one attempt never touch the next one."""

from __future__ import annotations

from typing import Any

from tasker.contracts.execution import Claim
from tasker.execution.held import Running
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.worker import Worker

NOTHING: Any = None


def claim(token: int) -> Claim:
    return Claim("step", "task", "s", "s", "hash", "space", token, token, 3, "correlation")


def worker_with(running: Running) -> Worker:
    worker = Worker(
        "worker",
        Slots(1),
        NOTHING,
        engine=NOTHING,
        plans=NOTHING,
        runner=NOTHING,
        settings=WorkerSettings(),
    )
    worker._held[running.claim.step_uuid] = running
    return worker


def test_a_beat_that_finds_the_former_attempt_gone_does_not_stop_the_next_one() -> None:
    running = Running(claim(2), "1:0", "handler")
    worker = worker_with(running)
    worker.stop_lost([("step", 1)])
    assert not running.cancel.is_set()

    worker.stop_lost([("step", 2)])
    assert running.cancel.is_set()


def test_a_stored_result_lets_go_of_its_own_claim_and_not_of_the_next_attempt() -> None:
    running = Running(claim(2), "1:0", "handler")
    worker = worker_with(running)
    worker.let_go([claim(1)])
    assert worker.held() == [("step", 2)]

    worker.let_go([claim(2)])
    assert not worker.held()
