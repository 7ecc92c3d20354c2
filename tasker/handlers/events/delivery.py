"""Delivery to one subscriber, in a thread of its own."""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from copy import deepcopy
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tasker.settings.queues import InProcessEvents

if TYPE_CHECKING:
    import asyncio


class _Kept(threading.local):
    """Event loop that a thread keeps for all its coroutines, created for the first one."""

    keeps = False
    runner: asyncio.Runner | None = None


_kept = _Kept()


@contextmanager
def one_loop() -> Iterator[None]:
    """Run all coroutines of this thread within the block in one event loop, so that they can share clients."""
    _kept.keeps = True
    try:
        yield
    finally:
        _kept.keeps, runner, _kept.runner = False, _kept.runner, None
        if runner is not None:
            runner.close()


def awaited(value: Any, limit: float) -> Any:
    """Return a plain value unchanged, or the result of an awaitable within `limit` seconds.

    Raises `TimeoutError` for an awaitable that takes longer, which is cancelled.
    """
    if not inspect.isawaitable(value):
        return value
    import asyncio

    coroutine = _within(value, limit)
    if _kept.keeps:
        _kept.runner = _kept.runner or asyncio.Runner()
        return _kept.runner.run(coroutine)
    return _run_in_a_thread(coroutine) if _has_running_loop() else asyncio.run(coroutine)


def _has_running_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_a_thread(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a new thread; the caller blocks, and so does the event loop running in it."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def _within(value: Awaitable[Any], limit: float) -> Any:
    import asyncio

    try:
        async with asyncio.timeout(limit) as allowed:
            return await value
    except TimeoutError:
        if allowed.expired():
            raise TimeoutError(f"Subscriber timeout: it was cancelled after {limit:g} seconds") from None
        raise


Waiting: TypeAlias = tuple[str, Any] | None
"""Name of an event, and the event as the callback gets it; None ends the thread."""
END: Final = None
log = logging.getLogger("tasker.domain_events")


class SubscriberThread:
    """Delivers events to one callback, plain or async, in order.

    `heard`, `failed`, `dropped` and `late` are counts since the start. `wants` decides by name whether the callback
    gets an event; `on_error` is called with exceptions of the callback.
    """

    def __init__(
        self,
        name: str,
        callback: Callable[[Any], object],
        wants: Callable[[str], bool],
        on_error: Callable[[Exception], None],
        limits: InProcessEvents,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.heard = self.failed = self.dropped = self.late = 0
        self._callback, self._wants, self._on_error = callback, wants, on_error
        self._limits, self._clock = limits, clock
        self._waiting: SimpleQueue[Waiting] = SimpleQueue()
        self._thread: Thread | None = None
        self._call: tuple[float, str] | None = None
        self._warned: tuple[float, str] | None = None

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def enqueue(self, name: str, event: Any) -> None:
        """Queue the event for delivery in the subscriber's thread. Never blocks; a full queue drops and counts it."""
        if not self._is_wanted(name):
            return
        if self.waiting >= self._limits.broadcast_buffer_size:
            self._drop()
            return
        self._waiting.put((name, event))
        if self._thread is None:
            self._thread = Thread(
                target=self._live, args=(self._waiting,), name=f"tasker subscriber {self.name}", daemon=True
            )
            self._thread.start()

    def hear(self, name: str, event: Any) -> None:
        """Deliver the event in the calling thread."""
        if self._is_wanted(name):
            self._hear(name, event)

    def check_timeout(self) -> None:
        """Log a callback that exceeds its timeout, once per event."""
        call = self._call
        if (
            call is not None
            and call is not self._warned
            and self._clock() - call[0] > self._limits.dispatch_timeout_ms / 1000
        ):
            self._warned = call
            self.late += 1
            message = "Subscriber timeout subscriber=%s event_name=%s timeout_ms=%s; it holds up no other"
            log.warning(message, self.name, call[1], self._limits.dispatch_timeout_ms)

    def end(self) -> None:
        """End the thread after the waiting events."""
        if self._thread is not None:
            self._waiting.put(END)

    def ended(self, seconds: float) -> None:
        """Wait at most `seconds` for the thread to end, then log the events that were not delivered."""
        thread, self._thread = self._thread, None
        if thread is not None and thread is not current_thread():
            thread.join(max(0.0, seconds))
        left = max(0, self.waiting - 1) if thread is not None and thread.is_alive() else 0
        if self.dropped or left:
            log.warning("subscriber_backlogged subscriber=%s dropped=%s waiting=%s", self.name, self.dropped, left)
        self._waiting = SimpleQueue()  # a thread that hangs keeps the old queue

    def _live(self, waiting: SimpleQueue[Waiting]) -> None:
        with one_loop():
            while (item := waiting.get()) is not END:
                try:
                    name, event = item
                    self._hear(name, deepcopy(event))  # a subscriber's changes must not affect others
                except BaseException:  # includes sys.exit, which must not end this thread
                    self.failed += 1
                    log.exception("subscriber_failed subscriber=%s", self.name)

    def _hear(self, name: str, event: Any) -> None:
        self._call = (self._clock(), name)
        try:
            awaited(self._callback(event), self._limits.dispatch_timeout_ms / 1000)
            self.heard += 1
        except Exception as error:
            self.failed += 1
            self._on_error(error)
        finally:
            self._call = None

    def _is_wanted(self, name: str) -> bool:
        try:
            return self._wants(name)
        except Exception as error:
            self.failed += 1
            self._on_error(error)
            return False

    def _drop(self) -> None:
        self.dropped += 1
        if self.dropped == 1:
            message = "subscriber_overflow subscriber=%s waiting=%s; it is too slow, more is dropped and counted"
            log.warning(message, self.name, self._limits.broadcast_buffer_size)
