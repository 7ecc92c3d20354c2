"""Ends a process in which nothing of Python's runs any more: native code keeps the interpreter's lock.

Its loop, its lease, its timeouts and its signal handlers all stand still then. A thread of C's sees it without a lock.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

SHORTEST_SECONDS = 5.0
"""A machine that is short of processors leaves a process waiting for so long without anybody's fault."""
LOOKS = 5


@contextmanager
def watch_interpreter(limit_seconds: float) -> Iterator[None]:
    """Within it, the process ends with status 1 and the stacks of its threads on standard error once no thread of its
    interpreter had its turn for `limit_seconds`, or `SHORTEST_SECONDS` where that is longer. Ctrl-Z counts for nothing.
    """
    limit = max(SHORTEST_SECONDS, limit_seconds)
    stop = threading.Event()
    with open(os.devnull, "w") as nowhere:
        arguments = (stop, limit, sys.stderr if _has_descriptor(sys.stderr) else nowhere)
        thread = threading.Thread(target=_put_off, args=arguments, name="tasker-interpreter", daemon=True)
        thread.start()
        before = signal.signal(signal.SIGTSTP, _suspend)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, before)
            stop.set()
            thread.join(timeout=1.0)
            faulthandler.cancel_dump_traceback_later()


def _put_off(stop: threading.Event, limit: float, told: TextIO) -> None:
    """Put the end off again and again."""
    while not stop.is_set():
        faulthandler.dump_traceback_later(limit, exit=True, file=told)
        stop.wait(limit / LOOKS)


def _suspend(_signal: int, _frame: FrameType | None) -> None:
    """Stop as the shell asks for it, unwatched: the thread watches again once the process goes on."""
    faulthandler.cancel_dump_traceback_later()
    os.kill(os.getpid(), signal.SIGSTOP)


def _has_descriptor(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False
