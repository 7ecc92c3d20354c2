"""A PostgreSQL of another version than the embedded one, started privately from the system's programs.

Its data are thrown away at the end, so it waits for no disk. The processes of one test run share it.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from tasker.db.embedded import watch
from tests.support.servers.run_folder import USERS
from tests.support.waiting import until

THROWN_AWAY = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "2GB", "checkpoint_timeout": "15min"}
"""For a server whose data need not survive the machine."""
NEVER_REPAID = {"jit": "off"}
"""Compiling a query takes a second, and each of these runs for a few milliseconds; the embedded server cannot do it."""
SETTINGS = {**THROWN_AWAY, **NEVER_REPAID, "listen_addresses": "", "max_connections": "200", "timezone": "UTC"}


def programs() -> Path | None:
    """The folder of the newest PostgreSQL that the system has, with its server; None without one."""
    found = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if found:
        return max(found, key=lambda path: int(path.parts[-3])).parent
    return Path(server).resolve().parent if (server := shutil.which("postgres")) else None


def second_server(folder: Path, binaries: Path, *, settings: Mapping[str, str] = SETTINGS) -> str:
    """The superuser's URL of the server in this folder, which the first process that asks starts. It stops when nobody
    uses the run's folder any more."""
    data = folder / "second"
    with open(folder / "second.lock", "a") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not (data / "postmaster.pid").exists():
            _start(binaries, data, settings)
    return _url(data)


def _url(data: Path) -> str:
    return f"postgresql://postgres@/postgres?host={quote(str(data), safe='')}"


def _start(binaries: Path, data: Path, settings: Mapping[str, str]) -> None:
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
    given = {**settings, "unix_socket_directories": str(data), **_counting(binaries)}
    command = [str(binaries / "postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in given.items())]
    with open(data.parent / "second.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, **options)
    until(lambda: _answers(_url(data)), f"the second server answers ({log.name} says why it does not)")
    _watch(data, process)


def _counting(binaries: Path) -> dict[str, str]:
    """Statements are counted for tests that turn it on, where the extension is installed."""
    if not (binaries.parent / "lib" / "pg_stat_statements.so").exists():
        return {}
    return {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "none"}


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def _watch(data: Path, process: subprocess.Popen[bytes]) -> None:
    """Stop it also when this test run is killed; both processes are meant to outlive us."""
    arguments = [str(data.parent / USERS), str(data / "postmaster.pid"), str(process.pid), "1"]
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", watch.__file__, *arguments], start_new_session=True, cwd="/"
    )
    process.returncode = watcher.returncode = 0  # nobody waits for them, and nobody is to complain about that
