"""`context.log`, and the capture of what handlers log and print.

The commands that run steps do this by themselves. A program with an `App` calls `capture_logs` once, where it sets up
its logging; `context.log` needs nothing.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO, cast

from tasker.known_secrets import KNOWN
from tasker.logging.current_step import LogLine, reporter
from tasker.logging.levels import Levels, ShownFilter

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
        if (step_reporter := reporter.get()) is not None:
            step_reporter.log(LogLine(time.time(), level, _logger.name, message, fields))
        if _logger.isEnabledFor(level):
            text = " ".join([message, *(f"{key}={value}" for key, value in fields.items())])
            _logger.log(level, "%s", text, extra={"fields": dict(fields), KEPT: True}, stacklevel=3)


LEVELS: Mapping[str, int | None] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": None,
}
OURS = "tasker"
HANDLERS = "tasker.handlers"


class StepLogHandler(logging.Handler):
    """Stores the log records of a running handler with its step; ignores other records."""

    def emit(self, record: logging.LogRecord) -> None:
        """Store the record with its traceback."""
        if logging.lastResort is not None and not self._is_shown(record) and record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)  # what logging would do without this handler
        to = reporter.get()
        if to is None or getattr(record, KEPT, False):
            return
        try:
            to.log(LogLine(record.created, record.levelno, record.name, _text(record), getattr(record, "fields", None)))
        except Exception:  # like every handler of logging
            self.handleError(record)

    def _is_shown(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


def _text(record: logging.LogRecord) -> str:
    exception = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
    return "\n".join(filter(None, (record.getMessage(), exception)))


class CapturedPrints:
    """Stream wrapper that also stores the output of a running handler with its step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text without secrets and store it with the running step."""
        if (to := reporter.get()) is not None:
            to.printed(text)
        self._stream.write(KNOWN.redact(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def capture_logs(level: int | None = logging.INFO) -> None:
    """Store the output of handlers in this process from now on: prints, and log records of this level or above.

    None stores nothing. Visible output does not change: if the level of the root logger is higher, it becomes the level
    of the root logger's handlers. Call it after logging is set up.
    """
    if level is None:
        return
    _hear(level)
    capture_prints()


def capture_prints() -> None:
    """Store the output of handlers to the current standard output, which the program may have replaced."""
    if not isinstance(sys.stdout, CapturedPrints):
        sys.stdout = cast(TextIO, CapturedPrints(sys.stdout))


def _hear(level: int) -> None:
    root = logging.getLogger()
    if any(isinstance(other, StepLogHandler) for other in root.handlers):
        return
    if named := [
        log_filter.levels
        for handler in root.handlers
        for log_filter in handler.filters
        if isinstance(log_filter, ShownFilter)
    ]:
        _lower(named[0], level)
    elif level < root.level:
        for root_handler in root.handlers:
            root_handler.setLevel(max(root_handler.level, root.level))
        # no records are created that neither the log nor a step needs
        for name, its_level in ((OURS, root.level), (HANDLERS, level)):
            if logging.getLogger(name).level == logging.NOTSET:
                logging.getLogger(name).setLevel(its_level)
        root.setLevel(level)
    root.addHandler(StepLogHandler(level))


def _lower(shown: Levels, level: int) -> None:
    """Lower the loggers to this level, because a filter restricts what is shown; Tasker's own keep their level."""
    tasker_logger = logging.getLogger(OURS)
    tasker_logger.setLevel(tasker_logger.getEffectiveLevel())
    for name in ("", HANDLERS, *(name for name in shown.of if name.partition(".")[0] != OURS)):
        logger = logging.getLogger(name)
        logger.setLevel(min(level, logger.getEffectiveLevel()))
