"""Ctrl-C and SIGTERM while a task runs: the first requests a stop, the second ends the process at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from tasker.__main__ import INTERRUPTED
from tasker.process.supervision.stopping import end_by_signal

SHOW_CURSOR = "\x1b[?25h"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """State of an interruption: the first signal sets `asked`; the second one prints `last_words` and exits."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.last_words = ""


@contextlib.contextmanager
def interruption() -> Iterator[Interruption]:
    """Handle both signals; restore the former handlers at the end.

    Ordinary signal handlers, so that the second signal works even while a step's handler blocks the event loop.
    """
    loop, found = asyncio.get_running_loop(), Interruption()
    received: list[int] = []
    process = os.getpid()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:
            end_by_signal(number)
        if received:
            leave_at_once(found.last_words)
        received.append(number)
        loop.call_soon_threadsafe(found.asked.set)

    former = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield found
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def leave_at_once(last_words: str) -> NoReturn:
    """Exit the process without waiting. Its claims expire with their leases, and the steps run again."""
    cursor = SHOW_CURSOR if os.isatty(1) or os.isatty(2) else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{cursor}\n{last_words}\n".encode())
    os._exit(INTERRUPTED)
