"""Waits for one of several events."""

from __future__ import annotations

import pytest

from tests.integration.engine.protocol.test_events_for_waits import awaited, match, pairs, refuse, send, waiting
from tests.support.engine_fixture import Lab


@pytest.mark.parametrize("dies", [False, True])
def test_what_one_of_several_events_refuses_another_one_takes(lab: Lab, dies: bool) -> None:
    """Two alternatives of one name and key differ in their schemas."""
    task = waiting(lab, wait=awaited(events=awaited()["events"] * 2, count=2))
    send(lab.one)
    found = pairs(lab.one)
    refuse(lab.one, found["pairs"][0], "is no refund")
    found = pairs(lab.one) if dies else {**found, "pairs": found["pairs"][1:]}

    assert match(lab.one, found) == 1

    assert match(lab.one) == 0, "it counts once"
    assert lab.observer.rows("select nth, problem from tasker.wait_events") == [(2, None)]
    assert lab.states(task)["b"] == "in_progress"
