"""Background jobs of plugins, each in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Any

from tasker.contracts.backoff import BackoffPolicy
from tasker.plugins.process import STOP_SECONDS, PluginHost

HOOK = "tasker_background_jobs"
AGAIN = BackoffPolicy(1.0, 60.0, spread=0.2)
"""Pause before a job that raised or returned is restarted."""
Run = Callable[[], Coroutine[Any, Any, None]]


class BackgroundJobs:
    """Background jobs of one process. Only the end of the process waits for them, for at most five seconds."""

    def __init__(self, plugins: PluginHost) -> None:
        self._plugins = plugins
        self._parts: list[_Part] = []

    def start(self, database_url: str) -> None:
        """Call the plugins' hooks and start the jobs that they return."""
        for name, run in self._plugins.answers(HOOK, database_url):
            part = _Part(name, run, self._plugins)
            self._parts.append(part)
            part.start()

    async def stop(self) -> None:
        """Cancel the jobs and wait until they have ended."""
        parts, self._parts = self._parts, []
        for part in parts:
            part.cancel()
        if parts:
            await asyncio.to_thread(_join, parts)


class _Part:
    def __init__(self, plugin: str, run: Run, plugins: PluginHost) -> None:
        self._plugin, self._run, self._plugins = plugin, run, plugins
        self._loop, self._stopped = asyncio.new_event_loop(), asyncio.Event()
        self.thread = Thread(target=self._live, name=f"tasker plugin {plugin} in the background", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def cancel(self) -> None:
        if self.thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        running = asyncio.ensure_future(self._keep())
        await self._stopped.wait()
        running.cancel()
        await asyncio.wait([running])

    async def _keep(self) -> None:
        failures = 0
        while True:
            while not self._plugins.is_on(self._plugin):
                await asyncio.sleep(AGAIN.first)
            started = time.monotonic()
            try:
                await self._run()
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # includes sys.exit, which must not end this thread
                if time.monotonic() - started > AGAIN.longest:
                    failures = 0
                    self._plugins.succeeded(self._plugin, HOOK)
                self._plugins.failed(self._plugin, HOOK, error)
            await asyncio.sleep(AGAIN.pause(failures, random.random()))
            failures += 1


def _join(parts: list[_Part]) -> None:
    for part in parts:
        part.thread.join(STOP_SECONDS)
