"""The services of a process: tasks that run until it stops, each started again when it crashes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tasker.contracts.backoff import BackoffPolicy
from tasker.resilience.outage import is_outage

Service = Callable[[], Coroutine[Any, Any, None]]
RESTART_SECONDS = 0.5
CRASHED = BackoffPolicy(RESTART_SECONDS, 10.0)
"""Pauses before a service starts again that crashes each time. Within the minute that health looks at it crashes often
enough to be called unhealthy."""
STOP_SECONDS = 1.5
"""How long a service may take for its end until it is told once more, and then until it is left behind."""
MINUTE = 60.0
_log = logging.getLogger("tasker.process")


class Supervisor:
    """Runs services. `crashes` counts restarts by service; `on_crash` is called at each, and at those for an outage."""

    def __init__(self, on_crash: Callable[[], None] = lambda: None) -> None:
        self.crashes: Counter[str] = Counter()
        self._recent: deque[tuple[float, str]] = deque(maxlen=1000)
        self._on_crash = on_crash
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def running(self) -> bool:
        """True between `start` and `stop`."""
        return bool(self._tasks)

    def recent_crashes(self) -> Counter[str]:
        """Those of the last minute by service."""
        since = asyncio.get_running_loop().time() - MINUTE
        return Counter(name for at, name in self._recent if at > since)

    def start(self, services: Sequence[Service]) -> None:
        """Run these services."""
        self._tasks += [
            asyncio.create_task(self._supervise(service), name=service.__qualname__) for service in services
        ]

    async def stop(self) -> bool:
        """End them in reverse order of their start, waiting a bounded time for each; False when one hangs.

        They are told twice: `asyncio.wait_for` (before Python 3.12) forgets it just as an answer comes, and what waits
        for the next answer, or for a server to clean up, would go on for as long as that may take.
        May be called twice, and by one of the services, which goes on and stays one. One that hangs stays one, too.
        """
        current = asyncio.current_task()
        ended = True
        for task in reversed([task for task in self._tasks if task is not current]):
            if await _is_hanging(task) and await _is_hanging(task):
                _log.error("service_not_stopping service=%s: it was told to stop and did not", task.get_name())
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
                else:  # also what a library has cancelled, and nobody this service
                    crashes = crashes + 1 if loop.time() - began < MINUTE else 0
                    pause = CRASHED.pause(crashes)
                    self._crashed(service, error, known=repr(error) == last)
                    last = repr(error)
                if is_cancelled():  # its clean-up failed: it has ended all the same
                    return
            await asyncio.sleep(pause)

    def _paused(self, service: Service, error: BaseException) -> None:
        """An outage is no crash: it is told by itself, and the service goes on when it is over."""
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
    """Tell it to stop; True when it does not."""
    task.cancel()
    _, hanging = await asyncio.wait([task], timeout=STOP_SECONDS)
    return bool(hanging)


def is_cancelled() -> bool:
    """True when somebody has told the running task to stop, and not a library what it was waiting for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
