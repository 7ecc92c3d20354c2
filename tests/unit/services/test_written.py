"""What a write came to, read off its answer."""

from __future__ import annotations

from time import perf_counter, time

import pytest

from tasker.engine.write_listeners import written


@pytest.mark.parametrize("age_ms", [0, 90_000, 86_400_000])
def test_a_task_has_lasted_since_the_time_that_its_identifier_begins_with(age_ms: int) -> None:
    created = f"{int(time() * 1000) - age_ms:012x}"
    task = f"{created[:8]}-{created[8:]}-7abc-8def-0123456789ab"

    found = written("advance", {"items": []}, {"finished": {task: "complete"}}, perf_counter())

    ((state, lasted_ms),) = found.lasted
    assert (state, found.ended) == ("complete", (("complete", 1),))
    assert age_ms <= lasted_ms < age_ms + 60_000


def test_a_task_of_a_clock_that_is_ahead_has_lasted_for_no_time() -> None:
    finished = {"ffffffff-ffff-7abc-8def-0123456789ab": "error"}
    assert written("advance", {"items": []}, {"finished": finished}, 0.0).lasted == (("error", 0.0),)
