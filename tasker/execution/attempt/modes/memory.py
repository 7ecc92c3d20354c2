"""Memory of a child process, measured from outside: resident memory, not reserved addresses.

Threads and numerical libraries reserve many more addresses than they use, so a kernel limit on addresses would stop
handlers that need little memory.
"""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.1


async def exceeded(pid: int, limit_mb: int) -> int:
    """Return once the process exceeds the limit; the return value is its resident memory in MB.

    The kernel's peak value covers the whole life of the process, which has run other steps before.
    """
    while (held := resident_mb(pid)) <= limit_mb:
        await asyncio.sleep(LOOK_SECONDS)
    return held


def resident_mb(pid: int) -> int:
    """Return the resident memory of the process in MB (1024 * 1024 bytes), or 0 if it has ended."""
    with suppress(OSError):
        return _of_linux(Path(f"/proc/{pid}/status").read_text("ascii", "replace"))
    with suppress(OSError, ValueError):
        told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True)
        return int(told.stdout) // 1024
    return 0


def _of_linux(status: str) -> int:
    lines = (line.split() for line in status.splitlines())
    return next((int(words[1]) // 1024 for words in lines if words[0] == "VmRSS:"), 0)
