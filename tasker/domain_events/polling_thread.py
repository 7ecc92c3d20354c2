"""Thread that polls until it is stopped."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod


class PollingThread(ABC):
    """Runs `_run` in a daemon thread between `start` and `stop`. `_run` ends when `_stopping` is set."""

    thread_name = "tasker-poller"

    def __init__(self, polling_interval_ms: int) -> None:
        self._interval = polling_interval_ms / 1000
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the daemon thread; does nothing if it is running."""
        if not self.is_running:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name=self.thread_name, daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Let the thread finish its current work and stop, within `timeout` seconds. May be called twice."""
        self._stopping.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(timeout)

    @property
    def is_running(self) -> bool:
        """True while the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    @abstractmethod
    def _run(self) -> None:
        """Poll until `_stopping` is set, with pauses of `_interval` seconds."""
