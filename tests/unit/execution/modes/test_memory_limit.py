"""`memory_mb`: a child process that holds more is ended, and its step says how much it was."""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import AttemptEnd
from tasker.execution.modes.subprocess_pool import resident_mb
from tasker.json_values import as_stored
from tests.unit.execution.bench import Bench, failure_of
from tests.unit.execution.modes import child_handlers


async def holds(bench: Bench, memory_mb: int | None, **inputs: Any) -> AttemptEnd:
    name = f"holds_{memory_mb}"
    return await bench.end(
        bench.attempt(child_handlers.Holds, callable=name, execution="process", memory_mb=memory_mb, inputs=inputs)
    )


async def test_a_handler_that_holds_more_than_its_limit_is_ended_and_told_limit_and_peak(bench: Bench) -> None:
    failure = failure_of(await holds(bench, 120, mb=300, sleeps=True))

    assert (failure.error_type, failure.retryable) == ("memory_exceeded", True)
    assert failure.metadata["memory_mb"] == 120
    assert failure.metadata["peak_mb"] > 120
    assert f"held {failure.metadata['peak_mb']} MB of memory, its memory_mb is 120" in failure.message


async def test_the_peak_that_is_told_is_not_that_of_an_earlier_step(bench: Bench) -> None:
    before = await holds(bench, None, mb=500)

    failure = failure_of(await holds(bench, 120, mb=150, sleeps=True))

    assert isinstance(before, Result)
    assert 120 < failure.metadata["peak_mb"] < 400


async def test_a_handler_within_its_limit_or_without_one_is_left_alone(bench: Bench) -> None:
    for limit in (500, None):
        end = await holds(bench, limit, mb=50)
        assert isinstance(end, Result)
        assert end.success, end.failure


async def test_memory_that_a_child_kept_from_an_earlier_step_counts_against_no_other(bench: Bench) -> None:
    first, second = await holds(bench, None, mb=1), await holds(bench, 64, mb=1)

    assert isinstance(first, Result)
    assert isinstance(second, Result)
    assert second.success, second.failure
    assert as_stored(second.success.encoded)["pid"] != as_stored(first.success.encoded)["pid"], (
        "Python alone is more than half of 64 MB"
    )


def test_what_a_process_holds_is_found() -> None:
    unit = 1024 * (1024 if sys.platform == "darwin" else 1)
    assert 10 < resident_mb(os.getpid()) <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit + 1
    assert resident_mb(2**22 + 1) == 0
