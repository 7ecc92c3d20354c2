"""Stopping a process: orderly at the first signal, at once at the second, and never later than its limit."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from tasker.contracts.defaults import LONGEST_OPTION_SECONDS, LONGEST_STOP_MS
from tasker.contracts.plan import Plan

T = TypeVar("T")
_log = logging.getLogger("tasker.process")
END_SECONDS = 30.0
"""How long an end may still take when who waits for it is cancelled: more than all of its waits, which are bounded."""
GIVE_BACK_SECONDS = 7.0
"""What is kept of the limit, but not more than half of it, for giving back what did not end and storing results."""
CLOSE_SECONDS = 3.0
"""Of that, what is kept for closing everything."""


async def to_its_end(work: Coroutine[Any, Any, T], seconds: float = END_SECONDS) -> T:
    """What `work` returns or raises. Whoever is cancelled here waits on until it has ended, but at most so many
    seconds, and is cancelled then: an end that is cut off can never be made up for."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait([working])
    except asyncio.CancelledError:
        await _whatever_comes(working, seconds)
        working.cancel()
        raise
    return working.result()


async def _whatever_comes(working: asyncio.Future[Any], seconds: float) -> None:
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while not working.done() and (left := until - clock()) > 0:
        with suppress(asyncio.CancelledError):  # some cancel again and again, until they see an end
            await asyncio.wait([working], timeout=left)


def grace_of(limit_seconds: float) -> float:
    """How long running steps may go on when the whole stop has this limit."""
    return limit_seconds - min(GIVE_BACK_SECONDS, limit_seconds / 2)


def give_back_of(limit_seconds: float) -> float:
    """How long giving back and storing may take: the rest of what is kept of the limit is for closing everything, so
    that an orderly stop ends before its limit while the database is away, too."""
    kept = limit_seconds - grace_of(limit_seconds)
    return max(kept - CLOSE_SECONDS, kept / 3)


def warn_short_grace(plans: Iterable[Plan], limit_seconds: float) -> None:
    """Warn when an orderly stop with this limit leaves a step less time than its own `timeout_seconds`.

    The timeout of all others only bounds what hangs: it says nothing about how long they take.
    """
    steps = ((step.timeout_seconds or 0.0, f"{p.namespace}/{p.name}/{step.name}") for p in plans for step in p.steps)
    seconds, name = max(steps, default=(0.0, ""))
    if seconds <= (grace := grace_of(limit_seconds)):
        return
    _log.warning(
        "an orderly stop leaves running steps %g seconds, and the step %s may take %g: what does not end in time is"
        " given back and begins anew elsewhere; %s",
        grace,
        name,
        seconds,
        _longer(math.ceil((seconds + min(GIVE_BACK_SECONDS, seconds)) * 1000)),
    )


def _longer(milliseconds: int) -> str:
    """What to do for a stop that takes so long. Neither the setting nor the option may be as long as any timeout."""
    seconds = math.ceil(milliseconds / 1000)
    if seconds > LONGEST_OPTION_SECONDS:
        longest = f"no stop lasts {seconds} seconds, the longest is --shutdown-timeout {LONGEST_OPTION_SECONDS}"
        return f"{longest}: give the step a shorter timeout_seconds, or let its handler keep checkpoints"
    long_enough = f"set orchestration.shutdown_timeout_ms to {milliseconds} or more"
    if milliseconds > LONGEST_STOP_MS:
        bound = f"orchestration.shutdown_timeout_ms allows at most {LONGEST_STOP_MS}"
        long_enough = f"start the worker with --shutdown-timeout {seconds} or more ({bound})"
    supervised = "let what supervises this process wait longer than that"
    return f"{long_enough}, and {supervised}, or give the step a shorter timeout_seconds"


def stopping_signals() -> tuple[signal.Signals, ...]:
    """What stops a process: the signals of supervisors and of Ctrl-C; in a terminal also that it was closed."""
    in_terminal = sys.stdin is not None and sys.stdin.isatty()
    return (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if in_terminal else ()))


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Around what blocks the event loop before anything runs: Ctrl-C raises there, and does not wait for its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def end_by_signal(number: int) -> None:
    """In a process that a handler has forked from this one: the signal does what it does by default."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class Stop:
    """Listens for the `stopping_signals` from its creation on; must be made in the main thread, inside the event loop.

    The limit holds even when a service hangs or a handler blocks the event loop: a thread ends the process then, with
    status 1; what it held is taken over when its lease is over.
    """

    def __init__(self, limit_seconds: float, exit_now: Callable[[int], object] = os._exit) -> None:
        self._limit, self._exit = limit_seconds, exit_now
        self._loop, self._asked = asyncio.get_running_loop(), asyncio.Event()
        self._signals, self._process = 0, os.getpid()
        for number in stopping_signals():
            signal.signal(number, lambda number, frame: self._signalled(number))

    async def asked(self) -> None:
        """Return at the first signal."""
        await self._asked.wait()

    async def interrupted(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do this, and return when it has ended; True when a signal came first, at which it is cancelled."""
        asked, working = asyncio.ensure_future(self.asked()), asyncio.ensure_future(work)
        await asyncio.wait([asked, working], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            await asyncio.wait([working])
            return True
        asked.cancel()
        working.result()
        return False

    def _signalled(self, number: int) -> None:
        if os.getpid() != self._process:
            end_by_signal(number)
        self._signals += 1
        if self._signals > 1:
            self._exit(128 + number)
        self._loop.call_soon_threadsafe(self._asked.set)
        timer = threading.Timer(self._limit, self._overdue)
        timer.daemon = True
        timer.start()

    def _overdue(self) -> None:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        stack = "".join(traceback.format_stack(frame))
        _log.error("not stopped after %g seconds; ending all the same, in the middle of:\n%s", self._limit, stack)
        self._exit(1)
