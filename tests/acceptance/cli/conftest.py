"""Commands in this process, and some as processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kept_connections import KeptConnections, lent_database
from tests.support.laboratory import Laboratory


@pytest.fixture
def database_url(laboratory: Laboratory, kept_connections: KeptConnections) -> Iterator[str]:
    """A database that tests use in turn. A test that ends sessions, or counts them, takes `new_database_url`."""
    with lent_database(laboratory, kept_connections) as url:
        yield url
