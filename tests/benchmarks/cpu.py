"""CPU that processes of this machine have used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg


def seconds_of(pid: int) -> float:
    """CPU seconds of a process, of its children, and of those that have ended; 0: not seen from here."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / 100 + sum(seconds_of(int(child)) for child in children)


def server_of(connection: psycopg.Connection[Any]) -> int:
    """The server's first process; 0 when it is on another machine, or does not tell."""
    try:
        row = connection.execute("select pg_read_file('postmaster.pid')").fetchone()
        pid = int(str(row and row[0]).split()[0])
        return pid if Path(f"/proc/{pid}/comm").read_text().strip() == "postgres" else 0
    except (psycopg.Error, FileNotFoundError, ValueError):
        return 0
