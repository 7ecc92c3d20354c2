"""Ctrl-C and SIGTERM while a task runs: the first asks to stop, the second ends the process at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

INTERRUPTED = 130
SHOW_CURSOR = "\x1b[?25h"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interruption() -> Iterator[asyncio.Event]:
    """An event that the first signal sets. The signals' former handlers come back at the end.

    Ordinary signal handlers, so that the second one works even while a handler blocks the event loop.
    """
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    received: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        if received:
            leave_at_once()
        received.append(number)
        loop.call_soon_threadsafe(asked.set)

    former = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def leave_at_once() -> None:
    """End the process without waiting for anything. What it was doing is found by its lease and done again."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.isatty(descriptor):
                os.write(descriptor, SHOW_CURSOR.encode())
    os._exit(INTERRUPTED)
