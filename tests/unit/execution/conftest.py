"""Runners for tests, closed when the test is over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.execution.bench import Bench, make_bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A runner with one thread and one process."""
    bench = make_bench()
    yield bench
    await bench.runner.close(0)
