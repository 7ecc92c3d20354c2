"""A watchdog of the event loop: a handler that blocks the loop delays all steps of this process.

It runs in a thread, because nothing on a blocked loop can run. The lease is renewed meanwhile by a thread of its own.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable

from tasker.contracts.clock import Clock

LOOKS = 4
"""Number of checks, and of turns of the loop, within the time limit."""

_log = logging.getLogger("tasker.worker")


class LoopWatchdog:
    """Watchdog that logs the stack when the loop has not turned for `limit_ms`, and the total time afterwards.

    `running()` names what runs on the loop and is called from the thread. `stalls` counts the warnings.
    """

    def __init__(self, clock: Clock, limit_ms: int, running: Callable[[], str | None]) -> None:
        self._clock, self._limit, self._running = clock, limit_ms / 1000, running
        self._turned = self._looked = clock.monotonic()
        self._stalled_since: float | None = None
        self._loop_thread = 0
        self.stalls = 0

    async def run(self) -> None:
        """Record the turns of the loop and check them from a thread, until cancelled."""
        self._loop_thread = threading.get_ident()
        self._turned = self._looked = self._clock.monotonic()
        stop = threading.Event()
        thread = threading.Thread(target=self._watch, args=(stop,), name="tasker-watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._turned = self._clock.monotonic()
                await asyncio.sleep(self._limit / LOOKS)
        finally:
            stop.set()
            thread.join(timeout=1.0)

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(self._limit / LOOKS):
            self.look()

    def look(self) -> None:
        """Check the loop once, from the thread."""
        now, before, self._looked = self._clock.monotonic(), self._looked, self._clock.monotonic()
        if now - before > self._limit:
            self._stood_still(now - before)
        elif self._stalled_since is not None:
            self._see_whether_it_turns()
        elif now - (turned := self._turned) > self._limit:
            self._warn(turned, now)

    def _stood_still(self, seconds: float) -> None:
        """Restart the measurement: this thread did not run either, so the gap says nothing about the loop."""
        self._turned = self._looked
        _log.warning(
            "process_stood_still ms=%d%s: it was stopped, or a handler holds the interpreter's lock",
            seconds * 1000,
            self._who(),
        )

    def _see_whether_it_turns(self) -> None:
        since = self._stalled_since
        if since is not None and self._turned > since:
            _log.warning("event_loop_recovered after_ms=%d", (self._turned - since) * 1000)
            self._stalled_since = None

    def _warn(self, turned: float, now: float) -> None:
        self._stalled_since = turned  # not read again: the loop may have turned since
        frame = sys._current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)) if frame else ""
        _log.warning(
            "event_loop_blocked ms=%d%s: call blocking code in a handler that is no `async def`\n%s",
            (now - turned) * 1000,
            self._who(),
            stack.rstrip(),
        )
        self.stalls += 1

    def _who(self) -> str:
        return f" by {name}" if (name := self._running()) else ""
