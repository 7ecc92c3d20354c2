"""One folder for the servers of a test run, shared by its processes: each holds a lock for as long as it lives, and the
last one to leave removes it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tasker.db.embedded import watch

IN_MEMORY = Path("/dev/shm")
ENOUGH = 6 * 2**30
"""Bytes that must be free there: some hundred databases at a time, and the write-ahead logs of two servers."""
PREFIX = "tasker-tests-"
USERS = "users.lock"


@contextmanager
def run_folder(run: str) -> Iterator[Path]:
    """The folder that the processes of `run` share."""
    parent = _parent()
    _remove_leftovers(parent)
    folder = parent / f"{PREFIX}{run}"
    with _join(folder) as users:
        yield folder
        if _is_unused(users):
            _remove(folder)


def _parent() -> Path:
    """In memory, where there is room: most of the work of a new database is its thousand files."""
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ENOUGH:
        return IN_MEMORY
    return Path(tempfile.gettempdir())


def _remove_leftovers(parent: Path) -> None:
    """Of runs that were killed."""
    for users in parent.glob(f"{PREFIX}*/{USERS}"):
        if os.access(users, os.W_OK):
            with suppress(FileNotFoundError), open(users, "a") as held:  # another run may have removed it
                if _is_unused(held):
                    _remove(users.parent)


def _join(folder: Path) -> IO[str]:
    while True:
        with suppress(FileNotFoundError, FileExistsError):  # it was removed between two of these steps
            folder.mkdir(mode=0o711, exist_ok=True)  # a server's account must pass through
            users = open(folder / USERS, "a")  # noqa: SIM115 - open for as long as the folder is used
            fcntl.flock(users, fcntl.LOCK_SH)
            if _is_there(users):
                return users
            users.close()  # whoever held it alone has removed it


def _is_there(users: IO[str]) -> bool:
    """Whether the file that is locked is the one that others find: by its name there may be the next one already."""
    try:
        return os.path.samestat(os.stat(users.name), os.fstat(users.fileno()))
    except FileNotFoundError:
        return False


def _is_unused(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(folder: Path) -> None:
    for pid_file in folder.glob("*/postmaster.pid"):
        if (pid := watch.postmaster_pid(str(pid_file))) is not None:
            watch.stop_postmaster(str(pid_file), pid)
    away = folder.with_name(f"{PREFIX}{uuid.uuid4().hex}")
    folder.rename(away)  # at once: somebody may come while the files go
    shutil.rmtree(away, ignore_errors=True)
