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

from tasker.settings.defaults import LONGEST_OPTION_SECONDS, LONGEST_STOP_MS
from tasker.template.plan import Plan

STOP_GRACE_SECONDS = 10.0
"""Time that a stopping program or server waits for running work."""

T = TypeVar("T")
_log = logging.getLogger("tasker.process")
END_SECONDS = 30.0
"""Time limit for finishing a stop whose caller was cancelled: longer than all of its waits, which are bounded."""
GIVE_BACK_SECONDS = 7.0
"""Part of the limit reserved for releasing claims and storing results, but at most half of the limit."""
CLOSE_SECONDS = 3.0
"""Part of that time reserved for closing connections."""


async def to_its_end(work: Coroutine[Any, Any, T], seconds: float = END_SECONDS) -> T:
    """Await `work` and return its result, even if the caller is cancelled meanwhile.

    A cancelled caller waits at most `seconds` longer; then the work is cancelled, too. An interrupted stop could not be
    repeated.
    """
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
        with suppress(asyncio.CancelledError):  # some callers cancel repeatedly
            await asyncio.wait([working], timeout=left)


def grace_of(limit_seconds: float) -> float:
    """Return how long running steps may continue when the whole stop has this limit."""
    return limit_seconds - min(GIVE_BACK_SECONDS, limit_seconds / 2)


def give_back_of(limit_seconds: float) -> float:
    """Return the time limit for releasing claims and storing results.

    The rest of the reserved time is for closing, so that an orderly stop ends before its limit even if the database is
    away.
    """
    reserved = limit_seconds - grace_of(limit_seconds)
    return max(reserved - CLOSE_SECONDS, reserved / 3)


def warn_short_grace(plans: Iterable[Plan], limit_seconds: float) -> None:
    """Warn when an orderly stop with this limit leaves a step less time than its own `timeout_seconds`.

    Steps without one are ignored: the default timeout only bounds hanging handlers, and says nothing about their
    duration.
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
    """Return the advice for a stop of this length. The setting and the option have upper bounds, unlike timeouts."""
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
    """Return the signals that stop a process: those of supervisors, Ctrl-C, and SIGHUP in a terminal."""
    in_terminal = sys.stdin is not None and sys.stdin.isatty()
    return (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if in_terminal else ()))


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` at once in code that blocks the event loop before any service runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def end_by_signal(number: int) -> None:
    """Apply the signal's default action, in a process that a handler has forked from this one."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class Stop:
    """Handler of the `stopping_signals`; create it in the main thread, inside the event loop.

    The limit holds even when a service hangs or a handler blocks the event loop: a thread ends the process then, with
    status 1. Other workers take over its steps when its lease expires.
    """

    def __init__(self, limit_seconds: float, exit_now: Callable[[int], object] = os._exit) -> None:
        self._limit, self._exit = limit_seconds, exit_now
        self._loop, self._requested = asyncio.get_running_loop(), asyncio.Event()
        self._signals, self._process = 0, os.getpid()
        for number in stopping_signals():
            signal.signal(number, lambda number, frame: self._signalled(number))

    async def requested(self) -> None:
        """Return at the first signal."""
        await self._requested.wait()

    async def interrupted(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work` until it ends, or cancel it at the first signal; return True in that case."""
        stop_request, working = asyncio.ensure_future(self.requested()), asyncio.ensure_future(work)
        await asyncio.wait([stop_request, working], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            await asyncio.wait([working])
            return True
        stop_request.cancel()
        working.result()
        return False

    def _signalled(self, number: int) -> None:
        if os.getpid() != self._process:
            end_by_signal(number)
        self._signals += 1
        if self._signals > 1:
            self._exit(128 + number)
        self._loop.call_soon_threadsafe(self._requested.set)
        timer = threading.Timer(self._limit, self._overdue)
        timer.daemon = True
        timer.start()

    def _overdue(self) -> None:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        stack = "".join(traceback.format_stack(frame))
        _log.error("not stopped after %g seconds; ending all the same, in the middle of:\n%s", self._limit, stack)
        self._exit(1)
