"""Servers of our own, which a test may kill, and a fleet on them; all is undone at the end in reverse order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasker.db import migrate
from tasker.db.database import ensure_database
from tasker.db.embedded import EmbeddedServer
from tasker.messaging import load_backend
from tests.support.fleets.fleet import Fleet, is_gone
from tests.support.fleets.mayhem import Mayhem
from tests.support.fleets.oracle import Oracle
from tests.support.servers import brokers
from tests.support.waiting import until

SEED = int(os.environ.get("TASKER_CHAOS_SEED", "1"))
TASKS = int(os.environ.get("TASKER_CHAOS_TASKS", "250"))
BACKENDS = ("pgmq", "rabbitmq", "redis", "nats")
KIND_OF = {"rabbitmq": brokers.RABBITMQ, "redis": brokers.REDIS, "nats": brokers.NATS}


@dataclass
class Setting:
    """What a run of the chaos suite stands on."""

    backend: str
    postgres: EmbeddedServer
    broker: brokers.PrivateServer | None
    fleet: Fleet
    oracle: Oracle
    left: list[EmbeddedServer] = field(default_factory=list)
    """Servers that were killed."""

    def mayhem(self, share: float = 1.0, seconds: float = 0.1, *, supervised: bool = False) -> Mayhem:
        """Mixed tasks: that share of TASKS."""
        count = max(20, round(TASKS * share))
        return Mayhem(self.fleet, self.oracle, self.postgres.url, self.backend, count, seconds, SEED, supervised)

    def restart_postgres(self) -> None:
        """`kill -9` of the server's first process, and a new server on the same data."""
        _kill_postmaster(self.postgres)
        self.left.append(self.postgres)
        self.postgres = EmbeddedServer.start(self.postgres.data_dir, linger_seconds=1)
        self.oracle.reconnect()


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Callable[..., Setting]]:
    """Makes the setting for a backend; further options are those of `Fleet`."""
    with ExitStack() as made:

        def make(backend: str, **options: Any) -> Setting:
            postgres = EmbeddedServer.start(tmp_path / "postgres", linger_seconds=1)
            ensure_database(postgres.url)
            _migrate(postgres.url)
            kind = KIND_OF.get(backend)
            broker = made.enter_context(brokers.private_server(kind)) if kind else None
            fleet = Fleet(postgres.url, tmp_path, backend=backend, broker=broker.url if broker else "", **options)
            result = Setting(backend, postgres, broker, fleet, Oracle(postgres.url))
            made.callback(lambda: [server.stop() for server in (*result.left, result.postgres)])
            made.callback(result.oracle.close)
            made.callback(fleet.stop)
            return result

        yield make


def _migrate(url: str) -> None:
    migrate.upgrade(url, load_backend("pgmq", {}).install_sql())


def _kill_postmaster(server: EmbeddedServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        row = connection.execute("select pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    pid = int(row[0].split()[0])
    os.kill(pid, 9)
    until(lambda: is_gone(pid), "the server is gone")
