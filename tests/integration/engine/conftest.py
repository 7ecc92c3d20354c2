"""A lab for each test: a namespace of its own on the module's database, checked for broken invariants at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.engine_fixture import Lab


@pytest.fixture
def lab(module_database_url: str) -> Iterator[Lab]:
    """Shares its database with the other tests of the module."""
    yield from _checked(Lab(module_database_url))


@pytest.fixture
def lone_lab(database_url: str) -> Iterator[Lab]:
    """Has its database to itself: for what looks at all tasks, as sweeps do."""
    yield from _checked(Lab(database_url))


def _checked(lab: Lab) -> Iterator[Lab]:
    try:
        yield lab
        lab.check()
    finally:
        lab.close()
