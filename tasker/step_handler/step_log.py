"""Log of one step, as handlers write to it (`context.log`)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from tasker.contracts.reporting import LogLine, reporter

KEPT = "tasker_kept"
"""Attribute of log records that are already stored with their step."""
_logger = logging.getLogger("tasker.handlers")


class StepLog:
    """Writes lines that are stored with the step and also go to the process's log. Fields must be JSON values."""

    def debug(self, message: str, /, **fields: Any) -> None:
        """Log details for debugging."""
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        """Log a normal event."""
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        """Log an anomaly that did not stop the work."""
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        """Log a failure that needs attention."""
        self._write(logging.ERROR, message, fields)

    def _write(self, level: int, message: str, fields: Mapping[str, Any]) -> None:
        if (kept := reporter.get()) is not None:
            kept.log(LogLine(time.time(), level, _logger.name, message, fields))
        if _logger.isEnabledFor(level):
            text = " ".join([message, *(f"{key}={value}" for key, value in fields.items())])
            _logger.log(level, "%s", text, extra={"fields": dict(fields), KEPT: True}, stacklevel=3)
