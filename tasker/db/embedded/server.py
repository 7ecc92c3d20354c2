"""Start, sharing and stop of the embedded server.

Every process holds a shared lock on one file for as long as it uses the server. The first one starts it; a watcher
process stops it when the lock is free, which is also the case after `kill -9`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from tasker.db.embedded import watch
from tasker.db.embedded.account import choose_account
from tasker.db.embedded.cluster import (
    DATABASE,
    SOCKET_NAME,
    ClusterLayout,
    PidFile,
    accepts_connections,
    ensure_cluster,
    ensure_socket_dir,
    find_binaries,
    make_root,
)
from tasker.db.embedded.locks import lock, try_lock
from tasker.errors import DatabaseUnavailable

DEFAULT_DATA_DIR = Path(".tasker") / "postgres"
LINGER_SECONDS = 10.0
START_TIMEOUT_SECONDS = 60.0
LOCK_TIMEOUT_SECONDS = 120.0  # starting and stopping take at most half of it; creating a cluster has no limit
POLL_SECONDS = 0.002
NO_ROOM_BYTES = 2**20

# Settings for a laptop: few processes, full durability, no network.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_level": "minimal",  # there are no replicas of this server
    "max_wal_senders": "0",
    "max_wal_size": "2GB",  # fewer checkpoints under load
    "checkpoint_timeout": "15min",
    "io_method": "sync",  # no extra processes for a database that fits in memory
    "jit": "off",
    "shared_preload_libraries": "plpgsql",  # the engine's functions use it: load it once, not in each session
    "autovacuum_naptime": "15s",  # hot tables are small and change quickly
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "cluster_name": "tasker",
}


class EmbeddedServer:
    """Use of one folder's embedded server by this process. Create it with `EmbeddedServer.start`."""

    def __init__(
        self, layout: ClusterLayout, users: IO[str], settings: Mapping[str, str], linger_seconds: float
    ) -> None:
        self.data_dir = layout.root
        self._layout = layout
        self._users = users
        self._settings, self._linger_seconds = settings, linger_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None

    @classmethod
    def start(
        cls,
        data_dir: Path = DEFAULT_DATA_DIR,
        *,
        settings: Mapping[str, str] | None = None,
        linger_seconds: float = LINGER_SECONDS,
        lock_timeout_seconds: float = LOCK_TIMEOUT_SECONDS,
    ) -> EmbeddedServer:
        """Join the server of `data_dir`; start it if it is not running and create its cluster if there is none.

        `settings` are PostgreSQL settings and apply only if this process starts the server. The server stops
        `linger_seconds` after the last process that joined it has ended, in any way. Raises `DatabaseUnavailable` with
        the server's own message if it does not start, and with the name of the process that is still stopping it after
        `lock_timeout_seconds`.
        """
        layout = ClusterLayout(data_dir.absolute())
        server = cls(layout, _join(layout, lock_timeout_seconds), settings or {}, linger_seconds)
        try:
            server.start_again()
        except BaseException:
            server._users.close()
            raise
        return server

    def is_running(self) -> bool:
        """Return False if the server that this process started or joined has died."""
        return self._pid is not None and watch.is_running(self._pid)

    def start_again(self) -> None:
        """Start the server or join one that another process started; do nothing if it is running.

        Raises `DatabaseUnavailable`.
        """
        if not accepts_connections(self._layout):
            if self._process is not None:
                self._process.poll()  # reaps our child if it has ended
            with _in_use(self._layout):
                self._process = _start(self._layout, self._settings, self._linger_seconds)
        self._pid = watch.postmaster_pid(str(self._layout.pid_file))

    @property
    def url(self) -> str:
        """Connection URL of the database `tasker`, over the server's socket."""
        return f"postgresql://postgres@/{DATABASE}?host={quote(str(self._layout.socket_dir), safe='')}"

    def stop(self) -> bool:
        """Leave the server, and stop it at once if no other process uses it. Returns True if it was stopped."""
        if self._users.closed:
            return False
        with self._users:
            if not _is_last(self._users):
                return False
            if (pid := watch.postmaster_pid(str(self._layout.pid_file))) is not None:
                watch.stop_postmaster(str(self._layout.pid_file), pid)
            if self._process is not None:
                self._process.wait()
            return True


class _Detached(subprocess.Popen[bytes]):
    """Child process meant to outlive this one; `Popen` would warn about that when it is garbage-collected."""

    def __del__(self) -> None:
        """Do nothing: the watcher ends the process."""


def _join(layout: ClusterLayout, timeout_seconds: float) -> IO[str]:
    with _in_use(layout):
        make_root(layout)
        return lock(layout.users_lock, shared=True, timeout_seconds=timeout_seconds)


@contextmanager
def _in_use(layout: ClusterLayout) -> Iterator[None]:
    """Raise `DatabaseUnavailable` if the folder is missing, full or owned by another account."""
    try:
        yield
    except OSError as error:
        raise DatabaseUnavailable(
            f"cannot use the data folder {layout.root}: {error.strerror or error}",
            hint="run in a folder you may write to, or name a server with --database-url",
        ) from None


def _is_last(users: IO[str]) -> bool:
    """Return True with the lock held exclusively; retries because the watcher also takes the lock for an instant."""
    for _ in range(3):
        if try_lock(users, shared=False):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _start(layout: ClusterLayout, settings: Mapping[str, str], linger_seconds: float) -> subprocess.Popen[bytes] | None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    with lock(layout.start_lock, shared=False, timeout_seconds=LOCK_TIMEOUT_SECONDS):
        if accepts_connections(layout):
            return None
        pid = _live_postmaster(layout)  # the process that started it was killed meanwhile
        if pid is not None and _comes_up(layout, pid, deadline):
            _spawn_watcher(layout, pid, linger_seconds)
            return None
        process = _launch_until_ready(layout, settings, deadline)
        _spawn_watcher(layout, process.pid, linger_seconds)
        return process


def _live_postmaster(layout: ClusterLayout) -> int | None:
    pid = watch.postmaster_pid(str(layout.pid_file))
    if pid is None or not watch.is_running(pid) or "postgres" not in _program_of(pid):
        return None
    return pid


def _comes_up(layout: ClusterLayout, pid: int, deadline: float) -> bool:
    """Return True when the server accepts connections, or False if it ends first because it was being killed."""
    while not accepts_connections(layout):
        if not watch.is_running(pid):
            return False
        if time.monotonic() > deadline:
            raise _did_not_start(layout)
        time.sleep(POLL_SECONDS)
    return True


def _launch_until_ready(layout: ClusterLayout, settings: Mapping[str, str], deadline: float) -> _Detached:
    binaries = find_binaries()
    account = choose_account(layout.data, binaries)
    ensure_cluster(layout, binaries, account)
    ensure_socket_dir(layout, account)
    _clear_leftovers(layout)
    options = SETTINGS | {"unix_socket_directories": str(layout.socket_dir)} | dict(settings)
    command = [str(binaries / "postgres"), "-D", str(layout.data)]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    while True:
        process = _launch(layout, account.command(command), account.popen_options())
        if _wait_until_ready(layout, process, deadline):
            return process
        # After `kill -9` of a server its children need a moment to end.
        if time.monotonic() > deadline or "pre-existing shared memory block" not in _last_words(layout):
            raise _did_not_start(layout)
        time.sleep(0.1)


def _clear_leftovers(layout: ClusterLayout) -> None:
    """Remove the lock files of a dead server, whose process id may belong to another program by now.

    This is safe: PostgreSQL also finds surviving children of that server by the data directory.
    """
    layout.pid_file.unlink(missing_ok=True)
    (layout.socket_dir / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)


def _did_not_start(layout: ClusterLayout) -> DatabaseUnavailable:
    log_tail = _last_words(layout) or "(nothing)"
    return DatabaseUnavailable(
        f"the embedded PostgreSQL did not start; {layout.log} says:\n{log_tail}", hint=_full_disk(layout)
    )


def _full_disk(layout: ClusterLayout) -> str | None:
    """Return a hint if the disk is full: the server then cannot write that into its log."""
    disk = os.statvfs(layout.data)
    full = disk.f_bavail * disk.f_frsize < NO_ROOM_BYTES
    return f"the disk of {layout.data.parent} is full: make room on it" if full else None


def _launch(layout: ClusterLayout, command: list[str], options: dict[str, Any]) -> _Detached:
    if layout.log.exists():
        layout.log.replace(layout.log.with_suffix(".log.previous"))
    with open(layout.log, "wb") as log:
        return _Detached(  # a separate session, so that Ctrl-C in the terminal does not reach it
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "LC_ALL": "C"},
            **options,
        )


def _wait_until_ready(layout: ClusterLayout, process: _Detached, deadline: float) -> bool:
    while process.poll() is None:
        pid_file = PidFile.read(layout.pid_file)
        if pid_file is not None and pid_file.pid == process.pid and pid_file.status == "ready":
            return True
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            return False
        time.sleep(POLL_SECONDS)
    return False


def _program_of(pid: int) -> str:
    proc = Path("/proc")
    if (proc / "self").exists():
        name = proc / str(pid) / "comm"
        return name.read_text().strip() if name.exists() else ""
    return subprocess.run(["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()


def _last_words(layout: ClusterLayout) -> str:
    return "\n".join(layout.log.read_text(errors="replace").splitlines()[-10:])


def _spawn_watcher(layout: ClusterLayout, pid: int, linger_seconds: float) -> None:
    arguments = [str(layout.users_lock), str(layout.pid_file), str(pid), str(linger_seconds)]
    quiet = subprocess.DEVNULL
    _Detached(
        [sys.executable, "-I", "-S", watch.__file__, *arguments],
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        start_new_session=True,
        cwd="/",
    )
