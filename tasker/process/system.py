"""The real clock, randomness and identifiers."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start, which never decrease."""
        return time.monotonic()


def new_uuid() -> str:
    """Return a new, time-ordered identifier (UUID version 7) as text."""
    return _uuid7(int.from_bytes(os.urandom(10), "big"))


def new_task_uuid() -> str:
    """Return a new task identifier: a UUID version 7 whose last 24 bits are zero, which number the task's steps."""
    return _uuid7(int.from_bytes(os.urandom(10), "big") & ~0xFFFFFF)


def _uuid7(random: int) -> str:
    milliseconds = time.time_ns() // 1_000_000
    value = (
        (milliseconds << 80) | (0x7 << 76) | ((random >> 64 & 0xFFF) << 64) | (0b10 << 62) | (random & (1 << 62) - 1)
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
