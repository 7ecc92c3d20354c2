"""A step that has lost its worker twice is claimed to run apart, however it is claimed; a reset makes it new."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.engine.protocol.conftest import Orchestra
from tests.support.engine_fixture import Item, Lab, change, retry
from tests.support.random_plans import RetryPolicy, Spec

MANY = RetryPolicy(max_attempts=9, backoff_base_ms=0)


async def end(orchestra: Orchestra, claim: Item, how: str) -> None:
    """Its worker is lost, or its handler fails, or it is given back."""
    if how == "lost":
        assert await orchestra.sweep() == {"lost_worker": 1}
    else:
        orchestra.lab.one.advance(
            retry(claim, delay_ms=0) if how == "failed" else change("release", claim, n={"reason": "closing"})
        )


def again(lab: Lab, way: str) -> dict[str, Any]:
    """The next claim of the only step, from the queue or from the promotion of its retry."""
    promoted = lab.one.call("due", lab.one.args(slots=1 if way == "handed over" else 0))
    (claim,) = promoted.get("claims") or lab.one.claim()
    return dict(claim)


HISTORIES = {
    ("failed",): False,
    ("lost",): False,
    ("failed", "failed"): False,
    ("lost", "failed"): False,
    ("lost", "given back", "failed"): False,
    ("lost", "lost"): True,
    ("lost", "failed", "lost"): True,
    ("lost", "lost", "failed"): True,
    ("lost", "lost", "lost", "lost"): True,
}


@pytest.mark.parametrize("way", ["from the queue", "handed over"])
async def test_a_step_that_has_lost_two_workers_is_to_run_apart(orchestra: Orchestra, way: str) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("s", retry=MANY))
    for ends, apart in HISTORIES.items():
        _, claims = lab.running(plan)
        claim = claims["s"]
        for how in ends:
            await end(orchestra, claim, how)
            claim = again(lab, way)
        assert bool(claim["apart"]) is apart, ends
        lab.one.finish(claim)


async def test_a_step_that_a_person_has_reset_runs_as_a_new_one(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.plan(Spec("s", retry=MANY)))
    claim = claims["s"]
    for _ in range(3):
        await end(orchestra, claim, "lost")
        claim = again(lab, "from the queue")
    assert claim["apart"]
    lab.one.advance(change("fail", claim, e={"error_type": "killed_its_workers", "message": "three times"}))

    lab.one.advance({"s": claim["step"], "t": task, "kind": "reset"})
    for how in ("failed", "lost", "failed"):
        claim = again(lab, "from the queue")
        assert not claim["apart"]
        await end(orchestra, claim, how)
