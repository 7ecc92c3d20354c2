"""Waiting for something that other processes do, bounded, without guessing how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_SECONDS = 120.0
LOOK_SECONDS = 0.05


def until(holds: Callable[[], bool], what: str, *, limit: float = LIMIT_SECONDS, show: Callable[[], str] = str) -> None:
    """Return once `holds()`; fail after `limit` seconds with `what` was waited for and what `show()` says."""
    end = time.monotonic() + limit
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit:g} s in vain until {what}\n{show()}")
        time.sleep(LOOK_SECONDS)
