"""A PostgreSQL primary with a streaming standby, which a test may fence, kill and promote."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import psycopg

from tasker.db.embedded import become
from tasker.db.embedded.account import choose_account
from tasker.db.embedded.cluster import find_binaries
from tests.support.servers.brokers import Kind, Launch, PrivateServer
from tests.support.servers.pooler import NO_SSL, SSL_REQUEST
from tests.support.servers.private_postgres import copied
from tests.support.waiting import until

SETTINGS = {
    "fsync": "off",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "hot_standby": "on",
    "timezone": "UTC",
}
Fill = Callable[[Path], object]
"""Puts a data folder into the folder of a server."""
SCHEME = "postgresql://postgres@127.0.0.1:{port}/tasker"


class Pair:
    """A primary and its standby. Use `primary_with_standby`."""

    def __init__(self, primary: PrivateServer, standby: PrivateServer) -> None:
        self._primary, self._standby = primary, standby
        hosts = ",".join(_address(server.url) for server in (primary, standby))
        self.url = f"postgresql://postgres@{hosts}/tasker?target_session_attrs=read-write"
        """Names both hosts, and asks for the one that accepts writes."""
        self.standby_url = standby.url

    def fence(self) -> None:
        """Make the primary refuse writes, also in the sessions that are open, and wait for the standby to have all."""
        with psycopg.connect(self._primary.url, autocommit=True) as admin:
            admin.execute("alter system set default_transaction_read_only = on")
            admin.execute("select pg_reload_conf()")
        self._wait_for_the_standby()

    def kill(self) -> None:
        """End the primary as a crash would, once the standby has all of its commits."""
        self._wait_for_the_standby()
        self._primary.kill()

    def promote(self) -> None:
        """Make the standby a primary."""
        with psycopg.connect(self._standby.url, autocommit=True) as admin:
            admin.execute("select pg_promote()")

    def _wait_for_the_standby(self) -> None:
        caught_up = "select count(*) = 1 and bool_and(replay_lsn >= pg_current_wal_lsn()) from pg_stat_replication"
        with psycopg.connect(self._primary.url, autocommit=True) as admin:
            until(lambda: admin.execute(caught_up).fetchone() == (True,), "the standby has replayed all commits")


@contextmanager
def primary_with_standby(cluster: Path) -> Iterator[Pair]:
    """A running pair with an empty database `tasker`, removed at the end; `cluster` is copied."""
    with ExitStack() as stack:
        primary = stack.enter_context(_running(partial(copied, cluster)))
        standby = stack.enter_context(_running(partial(_base_backup, primary.url)))
        yield Pair(primary, standby)


@contextmanager
def _running(fill: Fill) -> Iterator[PrivateServer]:
    kind = Kind("PostgreSQL", "", 0, "postgres", SCHEME, SSL_REQUEST, NO_SSL, partial(_launch, fill))
    server = PrivateServer(kind, str(find_binaries() / "postgres"))
    try:
        server.start()
        until(partial(_answers, server.url), "the server takes connections")
        yield server
    finally:
        server.remove()


def _launch(fill: Fill, program: str, port: int, folder: Path) -> Launch:
    if not (folder / "data").exists():
        folder.chmod(0o711)  # a server's account must pass through
        fill(folder)
    settings = {**SETTINGS, "port": str(port)}
    options = (part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
    return [*_prefix(folder / "data"), program, "-D", str(folder / "data"), *options], {}


def _base_backup(primary: str, folder: Path) -> None:
    program = str(find_binaries() / "pg_basebackup")
    data = folder / "data"
    data.mkdir()
    choose_account(data, find_binaries()).own(data)
    command = [*_prefix(data), program, "-D", str(data), "-d", primary, "-R", "-X", "stream", "-c", "fast"]
    subprocess.run(command, check=True, capture_output=True, cwd="/")


def _prefix(data: Path) -> Sequence[str]:
    """What runs a program as the owner of the data: PostgreSQL refuses to run as root. The programs may lie below a
    folder that is closed to that account."""
    owner = data.stat()
    return (
        (sys.executable, "-I", "-S", become.__file__, str(owner.st_uid), str(owner.st_gid)) if not os.geteuid() else ()
    )


def _answers(url: str) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(url).close()
        return True
    return False


def _address(url: str) -> str:
    return url.partition("@")[2].partition("/")[0]
