"""System account of the server: PostgreSQL refuses to run as root, so root starts it under another account."""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.embedded import become
from tasker.errors import DatabaseUnavailable

SERVICE_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class SystemAccount:
    """Account that runs the server's programs; `uid` is None for the current account."""

    uid: int | None = None
    gid: int | None = None
    prefix: tuple[str, ...] = ()
    """Command that changes to the account itself; if empty, the operating system's own call is used."""

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command line for these arguments."""
        return [*self.prefix, *arguments]

    def popen_options(self) -> dict[str, Any]:
        """Return the `subprocess` options that change to the account."""
        if self.uid is None or self.prefix:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Give the folder to the account and close it to all others."""
        folder.chmod(0o700)
        if self.uid is not None and self.gid is not None:
            os.chown(folder, self.uid, self.gid)


def choose_account(data: Path, binaries: Path) -> SystemAccount:
    """Return the account for the cluster at `data`: the current one, or for root its owner or a service account.

    Raises `DatabaseUnavailable` if root may not run a server under another account, as in a container without the
    capabilities, or if no account can reach both folders.
    """
    if os.geteuid() != 0:
        return SystemAccount()
    entry = _owner_of(data) or _service_account()
    held = _effective_capabilities()
    if held is not None and (missing := become.missing(held, become.TO_HAND_OVER)):
        raise _powerless(entry, missing)
    hidden = _first_hidden_from(entry, data) or _first_hidden_from(entry, binaries)
    return SystemAccount(entry.pw_uid, entry.pw_gid, _reach_hidden(entry, hidden, held) if hidden else ())


def _owner_of(data: Path) -> pwd.struct_passwd | None:
    try:
        owner = data.stat().st_uid
        return pwd.getpwuid(owner) if owner != 0 else None
    except (FileNotFoundError, KeyError):
        return None


def _service_account() -> pwd.struct_passwd:
    for name in SERVICE_ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise DatabaseUnavailable(
        f"PostgreSQL does not run as root, and this system has none of the accounts {', '.join(SERVICE_ACCOUNTS)}",
        hint="run as another user, or name a server with --database-url",
    )


def _first_hidden_from(entry: pwd.struct_passwd, path: Path) -> Path | None:
    """Return the first folder above `path` that the account may not traverse."""
    for folder in reversed(path.parents):
        if folder.exists() and not _may_pass(entry, folder.stat()):
            return folder
    return None


def _may_pass(entry: pwd.struct_passwd, folder: os.stat_result) -> bool:
    if folder.st_uid == entry.pw_uid:
        return bool(folder.st_mode & stat.S_IXUSR)
    if folder.st_gid == entry.pw_gid:
        return bool(folder.st_mode & stat.S_IXGRP)
    return bool(folder.st_mode & stat.S_IXOTH)


def _reach_hidden(entry: pwd.struct_passwd, hidden: Path, held: int | None) -> tuple[str, ...]:
    """Keep root's right to traverse folders (as under /root) instead of opening them to everybody."""
    if held is None or (missing := become.missing(held, become.TO_PASS)):
        lacks = f", and root lacks {', '.join(missing)} to change that" if held is not None else ""
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, and the account '{entry.pw_name}' may not pass through {hidden}{lacks}",
            hint=f"run as another user, `chmod o+x {hidden}`, or name a server with --database-url",
        )
    return (sys.executable, "-I", "-S", become.__file__, str(entry.pw_uid), str(entry.pw_gid))


def _powerless(entry: pwd.struct_passwd, missing: Sequence[str]) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"PostgreSQL does not run as root, and this root may not run it as '{entry.pw_name}': it lacks the "
        f"capabilities {', '.join(missing)}",
        hint="run as another user, give the container these capabilities, or name a server with --database-url",
    )


def _effective_capabilities() -> int | None:
    """Return the effective capabilities of the process as Linux bits, or None on other systems."""
    try:
        status = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        return None
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), None)
