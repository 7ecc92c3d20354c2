"""Real processes on a database, and the judge of what came of their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    running = Fleet(database_url, tmp_path)
    yield running
    running.stop()


@pytest.fixture
def oracle(database_url: str) -> Iterator[Oracle]:
    judge = Oracle(database_url)
    yield judge
    judge.close()
