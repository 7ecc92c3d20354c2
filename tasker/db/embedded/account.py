"""Under which system account the server runs: PostgreSQL refuses to run as root, so root hands it to another one."""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.db.embedded import become
from tasker.errors import DatabaseUnavailable

SERVICE_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class SystemAccount:
    """An account to run the server's programs under; `uid` is None for "the one we are"."""

    uid: int | None = None
    gid: int | None = None
    prefix: tuple[str, ...] = ()
    """A command that changes to the account itself; without it the operating system's own call is used."""

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command line for these arguments."""
        return [*self.prefix, *arguments]

    def popen_options(self) -> dict[str, Any]:
        """What `subprocess` needs to change to the account."""
        if self.uid is None or self.prefix:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Give the folder to the account, and to nobody else."""
        folder.chmod(0o700)
        if self.uid is not None and self.gid is not None:
            os.chown(folder, self.uid, self.gid)


def choose_account(data: Path, binaries: Path) -> SystemAccount:
    """The account for the cluster at `data`: ours, or, when we are root, the owner of the cluster or a service account.

    Raises `DatabaseUnavailable` when root may not run a server under another account, as in a container that took its
    capabilities away, or can offer none that reaches both folders.
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
    """The first folder above `path` that the account may not pass through."""
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
    """Keep root's right to pass through folders (as under /root) instead of opening them to everybody."""
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
    """What root may do here, as bits of Linux; None on other systems."""
    try:
        status = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        return None
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), None)
