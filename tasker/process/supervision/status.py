"""A log line with the status of a process, at SIGUSR1."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping

from tasker.process.supervision.reloading import ReloadSignals

_log = logging.getLogger("tasker.process")


class StatusSignal(ReloadSignals):
    """Handler of SIGUSR1; without it the signal ends the process.

    Call `listen` as soon as the process starts: a signal that arrives before `answer_with` is answered then.
    """

    number = signal.SIGUSR1

    def answer_with(self, status: Callable[[], Mapping[str, object]]) -> None:
        """Log the fields that `status` returns, in the running event loop, at every SIGUSR1."""
        self.answer(lambda: log_status(status()))


def log_status(fields: Mapping[str, object]) -> None:
    """Log the fields on one line, without those that have no value."""
    _log.info("process_status %s", " ".join(f"{name}={value}" for name, value in fields.items() if value != ""))
