"""How much memory a child process holds, looked at from outside: what is resident, not what is reserved.

Threads and numerical libraries reserve far more addresses than they use, so that a limit of the kernel on those would
hit what needs little.
"""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.1


async def exceeded(pid: int, limit_mb: int) -> int:
    """Return once the process holds more than the limit; how many MB it was seen to hold.

    The peak that the system knows is that of the whole life of the process, which has run other steps before.
    """
    while (held := resident_mb(pid)) <= limit_mb:
        await asyncio.sleep(LOOK_SECONDS)
    return held


def resident_mb(pid: int) -> int:
    """MB (1024 * 1024 bytes) that the process holds now. 0: it has gone."""
    with suppress(OSError):
        return _of_linux(Path(f"/proc/{pid}/status").read_text("ascii", "replace"))
    with suppress(OSError, ValueError):
        told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True)
        return int(told.stdout) // 1024
    return 0


def _of_linux(status: str) -> int:
    lines = (line.split() for line in status.splitlines())
    return next((int(words[1]) // 1024 for words in lines if words[0] == "VmRSS:"), 0)
