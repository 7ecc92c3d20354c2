"""A lab for each test, without tasks at first and checked for broken invariants at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.engine_fixture import Lab
from tests.support.laboratory import Laboratory


@pytest.fixture
def lab(laboratory: Laboratory) -> Iterator[Lab]:
    """Its database has no rows of other tests, and sessions that have served them."""
    sessions = laboratory.sessions
    try:
        yield from _checked(Lab(sessions.url, kept=sessions))
    finally:
        laboratory.clean()


@pytest.fixture
def module_lab(module_database_url: str) -> Iterator[Lab]:
    """Shares its database with the tests of its module alone, in a namespace of its own: for what counts the server's
    work, which depends on the statistics."""
    yield from _checked(Lab(module_database_url))


@pytest.fixture
def lone_lab(database_url: str) -> Iterator[Lab]:
    """Has a new database to itself: for what looks at pages and plans, and what changes the database."""
    yield from _checked(Lab(database_url))


def _checked(lab: Lab) -> Iterator[Lab]:
    try:
        yield lab
        lab.check()
    finally:
        lab.close()
