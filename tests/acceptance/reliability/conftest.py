"""A fleet and its judge on one database; whatever a test makes is undone at its end, in reverse order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle


@pytest.fixture
def made(database_url: str) -> Iterator[ExitStack]:
    """Takes what must be undone while the database is still there."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def oracle(database_url: str, made: ExitStack) -> Oracle:
    judge = Oracle(database_url)
    made.callback(judge.close)
    return judge


@pytest.fixture
def new_fleet(database_url: str, tmp_path: Path, made: ExitStack) -> Callable[..., Fleet]:
    """Makes a fleet with the options of `Fleet`."""

    def make(**options: Any) -> Fleet:
        fleet = Fleet(database_url, tmp_path, **options)
        made.callback(fleet.stop)
        return fleet

    return make


@pytest.fixture
def fleet(new_fleet: Callable[..., Fleet]) -> Fleet:
    return new_fleet()
