"""A PostgreSQL server of a test's own, which the test may kill."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tasker.db.database import ensure_database
from tasker.db.embedded import EmbeddedServer, watch
from tasker.db.embedded.account import choose_account
from tasker.db.embedded.cluster import ClusterLayout, ensure_cluster, find_binaries, make_root
from tests.support.waiting import until


def make_cluster(folder: Path) -> Path:
    """A cluster that nobody has used, to be copied; made by the first process of a run that asks."""
    layout, binaries = ClusterLayout(folder), find_binaries()
    with open(folder.with_suffix(".lock"), "a") as making:
        fcntl.flock(making, fcntl.LOCK_EX)
        make_root(layout)
        ensure_cluster(layout, binaries, choose_account(layout.data, binaries))
    return folder


def copied(cluster: Path, folder: Path) -> Path:
    """The folder, with a cluster: copying one takes a tenth of the work of making it."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", cluster / "data", folder], check=True)
    return folder


class PrivatePostgres:
    """A server in a folder, on the server's own socket. Use `private_server`."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder, self._settings = folder, settings
        self._server = EmbeddedServer.start(folder, settings=settings, linger_seconds=1)
        self._left: list[EmbeddedServer] = []
        self.url = self._server.url
        ensure_database(self.url)

    def restart(self) -> None:
        """`kill -9` of the server's first process, and a new server on the same data."""
        pid = watch.postmaster_pid(str(self._folder / "data" / "postmaster.pid"))
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: not watch.is_running(pid), "the server is gone")
        self._left.append(self._server)
        self._server = EmbeddedServer.start(self._folder, settings=self._settings, linger_seconds=1)

    def stop(self) -> None:
        """Stop it; its data stay."""
        for server in (*self._left, self._server):
            server.stop()


@contextmanager
def private_server(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[PrivatePostgres]:
    """A running server with an empty database, stopped at the end. `settings` are PostgreSQL's."""
    server = PrivatePostgres(folder, settings)
    try:
        yield server
    finally:
        server.stop()


class Stoppable:
    """An embedded server of our own that can be stopped under its users."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = EmbeddedServer.start(folder, settings={"fsync": "off"}, linger_seconds=0)

    def stop(self) -> None:
        """Stop it under its users."""
        pid_file = str(self.folder / "data" / "postmaster.pid")
        pid = watch.postmaster_pid(pid_file)
        assert pid is not None
        watch.stop_postmaster(pid_file, pid)

    def start(self) -> None:
        """Start it again, on its data."""
        before, self.server = self.server, EmbeddedServer.start(self.folder, settings={"fsync": "off"})
        before._users.close()
