"""The services of a process: tasks that run until it stops, each restarted when it crashes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tasker.clock import BackoffPolicy
from tasker.resilience.outage import is_outage

Service = Callable[[], Coroutine[Any, Any, None]]
RESTART_SECONDS = 0.5
CRASHED = BackoffPolicy(RESTART_SECONDS, 10.0)
"""Pauses before a crashing service restarts: short enough that a minute's crashes make the process unhealthy."""
STOP_SECONDS = 1.5
"""Time that a service has to end before it is cancelled again, and then until it is abandoned."""
MINUTE = 60.0
_log = logging.getLogger("tasker.process")


class Supervisor:
    """Runner of services. `crashes` counts crashes by service; `on_crash` is called at each crash and each outage."""

    def __init__(self, on_crash: Callable[[], None] = lambda: None) -> None:
        self.crashes: Counter[str] = Counter()
        self._recent: deque[tuple[float, str]] = deque(maxlen=1000)
        self._on_crash = on_crash
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def running(self) -> bool:
        """Return True between `start` and `stop`."""
        return bool(self._tasks)

    def recent_crashes(self) -> Counter[str]:
        """Return the crashes of the last minute by service."""
        since = asyncio.get_running_loop().time() - MINUTE
        return Counter(name for at, name in self._recent if at > since)

    def start(self, services: Sequence[Service]) -> None:
        """Run these services in addition to those already running."""
        self._tasks += [
            asyncio.create_task(self._supervise(service), name=service.__qualname__) for service in services
        ]

    async def stop(self) -> bool:
        """Stop the services in reverse order of their start, with a bounded wait for each; return False when one hangs.

        Each is cancelled twice: `asyncio.wait_for` (before Python 3.12) loses a cancellation that coincides with an
        answer, and the service could then wait indefinitely for the next answer, or for a server to clean up.

        May be called twice, and by one of the services, which continues to run. That service and hanging ones stay
        registered.
        """
        current = asyncio.current_task()
        ended = True
        for task in reversed([task for task in self._tasks if task is not current]):
            if await _is_hanging(task) and await _is_hanging(task):
                _log.error("service_not_stopping service=%s: it did not stop when requested", task.get_name())
                ended = False
            elif task in self._tasks:
                self._tasks.remove(task)
        return ended

    async def _supervise(self, service: Service) -> None:
        loop, crashes, last = asyncio.get_running_loop(), -1, ""
        while True:
            began, pause = loop.time(), RESTART_SECONDS
            try:
                await service()
                return
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and is_cancelled():
                    raise
                if is_outage(error):
                    self._paused(service, error)
                else:  # also a CancelledError raised by a library, while the service was not cancelled
                    crashes = crashes + 1 if loop.time() - began < MINUTE else 0
                    pause = CRASHED.pause(crashes)
                    self._crashed(service, error, known=repr(error) == last)
                    last = repr(error)
                if is_cancelled():  # the clean-up of the cancelled service failed, but the service has ended
                    return
            await asyncio.sleep(pause)

    def _paused(self, service: Service, error: BaseException) -> None:
        """Log an outage at debug level, since it has log lines of its own; the service resumes when it is over."""
        _log.debug("service_backing_off service=%s: %s", service.__qualname__, error)
        self._on_crash()

    def _crashed(self, service: Service, error: BaseException, *, known: bool) -> None:
        """Log the crash, with a traceback unless it is `known` from the last one."""
        self.crashes[service.__qualname__] += 1
        self._recent.append((asyncio.get_running_loop().time(), service.__qualname__))
        _log.error(
            "service_crashed service=%s error=%r", service.__qualname__, error, exc_info=None if known else error
        )
        self._on_crash()


async def _is_hanging(task: asyncio.Task[None]) -> bool:
    """Cancel the task; return True when it does not end in time."""
    task.cancel()
    _, hanging = await asyncio.wait([task], timeout=STOP_SECONDS)
    return bool(hanging)


def is_cancelled() -> bool:
    """Return True when the running task itself was cancelled, not only an operation that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
