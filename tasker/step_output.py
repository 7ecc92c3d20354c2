"""Keeps what handlers log and print with their steps (`tasker task logs`).

The commands that run steps do this by themselves. A program with an `App` calls `capture_logs` once, where it sets up
its logging; `context.log` needs nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any, TextIO, cast

from tasker.contracts.reporting import LogLine, reporter
from tasker.log_levels import Levels, ShownFilter
from tasker.step_handler.step_log import KEPT

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
    """Gives the records that are written while a handler runs to its step; others are none of its business."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record, with its traceback."""
        if logging.lastResort is not None and not self._is_shown(record) and record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)  # as it would be if this handler were not there
        to = reporter.get()
        if to is None or getattr(record, KEPT, False):
            return
        try:
            to.log(LogLine(record.created, record.levelno, record.name, _text(record), getattr(record, "fields", None)))
        except Exception:  # as every handler of logging does it
            self.handleError(record)

    def _is_shown(self, record: logging.LogRecord) -> bool:
        """Whether any other handler gets it."""
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(each is not self for each in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


def _text(record: logging.LogRecord) -> str:
    exception = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
    return "\n".join(filter(None, (record.getMessage(), exception)))


class CapturedPrints:
    """A stream that gives what is written while a handler runs to its step as well."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, and keep."""
        if (to := reporter.get()) is not None:
            to.printed(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def capture_logs(level: int | None = logging.INFO) -> None:
    """Keep from now on what handlers in this process log, from this level of `logging` on, and what they print.

    None keeps nothing. What is shown stays as it is: the level of the root logger becomes that of its handlers, where
    it is higher. To be called behind whatever else sets up logging.
    """
    if level is None:
        return
    _hear(level)
    capture_prints()


def capture_prints() -> None:
    """Keep what handlers write to standard output as it is now, which somebody may have replaced."""
    if not isinstance(sys.stdout, CapturedPrints):
        sys.stdout = cast(TextIO, CapturedPrints(sys.stdout))


def _hear(level: int) -> None:
    root = logging.getLogger()
    if any(isinstance(each, StepLogHandler) for each in root.handlers):
        return
    if named := [each.levels for handler in root.handlers for each in handler.filters if isinstance(each, ShownFilter)]:
        _lower(named[0], level)
    elif level < root.level:
        for each in root.handlers:
            each.setLevel(max(each.level, root.level))
        for name, its_level in ((OURS, root.level), (HANDLERS, level)):  # nothing is made of lines that nobody wants
            if logging.getLogger(name).level == logging.NOTSET:
                logging.getLogger(name).setLevel(its_level)
        root.setLevel(level)
    root.addHandler(StepLogHandler(level))


def _lower(shown: Levels, level: int) -> None:
    """Have loggers make lines from this level on, of which a filter shows what it did; Tasker's own make no more."""
    ours = logging.getLogger(OURS)
    ours.setLevel(ours.getEffectiveLevel())
    for name in ("", HANDLERS, *(name for name in shown.of if name.partition(".")[0] != OURS)):
        logger = logging.getLogger(name)
        logger.setLevel(min(level, logger.getEffectiveLevel()))
