"""A PostgreSQL of another version than the embedded one, started privately from the system's programs.

Its data are thrown away at the end, so it waits for no disk. The processes of one test run share it: each holds a lock
for as long as it lives, and the server stops when nobody holds it any more.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import psycopg

from tasker.db.embedded import watch
from tests.support.waiting import until

THROWN_AWAY = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "2GB", "checkpoint_timeout": "15min"}
"""For a server whose data need not survive the machine."""
SETTINGS = {**THROWN_AWAY, "listen_addresses": "", "max_connections": "200", "timezone": "UTC"}


def programs() -> Path | None:
    """The folder of the newest PostgreSQL that the system has, with its server; None without one."""
    found = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if found:
        return max(found, key=lambda path: int(path.parts[-3])).parent
    return Path(server).resolve().parent if (server := shutil.which("postgres")) else None


@contextmanager
def second_server(run: str, binaries: Path) -> Iterator[str]:
    """The superuser's URL of the server that the processes of `run` share; the last one to leave stops it."""
    folder = Path(tempfile.gettempdir()) / f"tasker-tests-{run}"
    data = folder / "data"
    with _join(folder) as users:
        with open(folder / "start.lock", "a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not (data / "postmaster.pid").exists():
                _start(binaries, data, users)
        yield _url(data)
        if _leave(users, data):
            shutil.rmtree(folder, ignore_errors=True)


def _join(folder: Path) -> IO[str]:
    while True:
        folder.mkdir(mode=0o711, exist_ok=True)  # the server's account must pass through
        users = open(folder / "users.lock", "a")  # noqa: SIM115 - open for as long as the server is used
        fcntl.flock(users, fcntl.LOCK_SH)
        if Path(users.name).exists():
            return users
        users.close()  # the last one that left has just removed it


def _url(data: Path) -> str:
    return f"postgresql://postgres@/postgres?host={quote(str(data), safe='')}"


def _start(binaries: Path, data: Path, users: IO[str]) -> None:
    account: dict[str, Any] = {}
    data.mkdir(mode=0o700)
    if os.geteuid() == 0:
        entry = pwd.getpwnam("postgres")
        os.chown(data, entry.pw_uid, entry.pw_gid)
        account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    options = {"cwd": "/", "stdin": subprocess.DEVNULL, "start_new_session": True, **account}
    make = [
        str(binaries / "initdb"),
        "-D",
        str(data),
        "-U",
        "postgres",
        "--auth=trust",
        "-E",
        "UTF8",
        "--locale=C",
        "-N",
    ]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, **options)
    settings = SETTINGS | {"unix_socket_directories": str(data)}
    command = [str(binaries / "postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in settings.items())]
    with open(data.parent / "server.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, **options)
    until(lambda: _answers(_url(data)), f"the second server answers ({log.name} says why it does not)")
    _watch(users, data, process)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def _watch(users: IO[str], data: Path, process: subprocess.Popen[bytes]) -> None:
    """Stop it also when this test run is killed; both processes are meant to outlive us."""
    arguments = [users.name, str(data / "postmaster.pid"), str(process.pid), "1"]
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", watch.__file__, *arguments], start_new_session=True, cwd="/"
    )
    process.returncode = watcher.returncode = 0  # nobody waits for them, and nobody is to complain about that


def _leave(users: IO[str], data: Path) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    pid_file = str(data / "postmaster.pid")
    if (pid := watch.postmaster_pid(pid_file)) is not None:
        watch.stop_postmaster(pid_file, pid)
    return True
