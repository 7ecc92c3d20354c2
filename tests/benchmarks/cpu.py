"""CPU that processes of this machine have used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import psycopg


class Spent:
    """CPU since it was made: of Python (this process if `own`, and `others`) and of the server. 0: not seen."""

    def __init__(self, url: str, others: Callable[[], float] = lambda: 0.0, *, own: bool = True) -> None:
        with psycopg.connect(url) as connection:
            self._server = server_of(connection)
        self._others, self._own = others, own
        self._before = self._now()

    def each(self, steps: int) -> dict[str, float]:
        """Microseconds for each step, as a figure keeps them."""
        now = self._now()
        return {f"{name}_us": (now[name] - self._before[name]) / steps * 1e6 for name in now}

    def _now(self) -> Mapping[str, float]:
        own = time.process_time() if self._own else 0.0
        return {"python": own + self._others(), "postgresql": seconds_of(self._server)}


def seconds_of(pid: int) -> float:
    """CPU seconds of a process, of its children, and of those that have ended; 0: not seen from here."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / 100 + sum(seconds_of(int(child)) for child in children)


def memory_of(pid: int | Literal["self"]) -> float:
    """MiB that a process has in memory; 0: not seen from here."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def server_of(connection: psycopg.Connection[Any]) -> int:
    """The server's first process; 0 when it is on another machine, or does not tell."""
    try:
        row = connection.execute("select pg_read_file('postmaster.pid')").fetchone()
        pid = int(str(row and row[0]).split()[0])
        return pid if Path(f"/proc/{pid}/comm").read_text().strip() == "postgres" else 0
    except (psycopg.Error, FileNotFoundError, ValueError):
        return 0
