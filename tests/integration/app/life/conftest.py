"""Programs start and stop here, and their sessions are counted: each has a database to itself."""

from __future__ import annotations

import pytest


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url
