"""File locks between the processes that share an embedded server; a file is locked as long as it is open.

The operating system releases them however a process ends, `kill -9` included.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from pathlib import Path
from typing import IO

from tasker.errors import DatabaseUnavailable

POLL_SECONDS = 0.01
PATIENCE_SECONDS = 2.0
"""Waiting time after which a line is logged."""

_log = logging.getLogger("tasker.embedded")


def lock(path: Path, *, shared: bool, timeout_seconds: float) -> IO[str]:
    """Lock the file, shared or exclusively, creating it if missing; closing the returned file releases the lock.

    Any account that may open the file could lock it and block all others, so only its owner may read it. Raises
    `DatabaseUnavailable`, which names the holder, after `timeout_seconds`, and `OSError` if the file cannot be opened.
    """
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    try:
        os.fchmod(file.fileno(), 0o600)  # an older version made it readable
        if not try_lock(file, shared=shared):
            _wait(file, path, shared, timeout_seconds)
    except BaseException:
        file.close()
        raise
    return file


def try_lock(file: IO[str], *, shared: bool) -> bool:
    """Lock the file without waiting; return False if another lock conflicts."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(file: IO[str], path: Path, shared: bool, timeout_seconds: float) -> None:
    began = time.monotonic()
    logged = False
    while not try_lock(file, shared=shared):
        waited = time.monotonic() - began
        if waited >= timeout_seconds:
            raise _held_too_long(path, timeout_seconds)
        if waited > PATIENCE_SECONDS and not logged:
            logged = True
            _log.info("waiting for %s, which starts or stops the server of %s", _holder_text(path), path.parent)
        time.sleep(POLL_SECONDS)


def _held_too_long(path: Path, timeout_seconds: float) -> DatabaseUnavailable:
    pid = holder_of(path)
    act = f"if it hangs, end it (kill {pid})" if pid else f"`fuser {path}` finds it; if it hangs, end it"
    return DatabaseUnavailable(
        f"{_holder_text(path)} has held {path} for more than {timeout_seconds:g} s; it is held alone only while the "
        "embedded PostgreSQL starts or stops",
        hint=f"{act} and try again, or name a server with --database-url",
    )


def _holder_text(path: Path) -> str:
    pid = holder_of(path)
    if pid is None:
        return "another process"
    try:
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return f"process {pid}"


def holder_of(path: Path) -> int | None:
    """Return the process that holds the file exclusively, or None if unknown (read from Linux's /proc/locks)."""
    try:
        file_stat = path.stat()
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    place = f"{os.major(file_stat.st_dev):02x}:{os.minor(file_stat.st_dev):02x}:{file_stat.st_ino}"
    for fields in map(str.split, lines):
        if fields[1] == "FLOCK" and fields[3] == "WRITE" and fields[5] == place and int(fields[4]) > 0:
            return int(fields[4])
    return None
