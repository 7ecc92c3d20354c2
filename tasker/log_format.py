"""The log of a process on standard error: as text for people, as one JSON object per line for programs.

Every line that is written while a handler runs carries its task and step, whichever logger it came by, and holds none
of the sensitive values that the step knows.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tasker.contracts.running import covering, running
from tasker.errors import UsageError
from tasker.log_levels import LEVEL_VARIABLE, Levels, ShownFilter, levels_named
from tasker.log_lines import LogRecordLine, as_text, ids_of

FORMAT_VARIABLE = "TASKER_LOG_FORMAT"
FORMATS = ("text", "json")
TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class StepFilter(logging.Filter):
    """Gives each record `record.step`: of the step whose handler writes it the ids, {} for any other.

    For handlers of logging, whose formatter may use it; it lets everything pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """True, with the ids added."""
        claim = running.get()
        record.step = {} if claim is None else ids_of(claim)
        return True


class BareFormatter(logging.Formatter):
    """The message, and an exception below."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and what stands below it."""
        text: str = covered(super().format(record))
        return text


class TextFormatter(BareFormatter):
    """Time, level, logger, message; behind it the ids of the step that wrote it, and an exception below."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The first line."""
        text, ids = super().formatMessage(record), getattr(record, "step", {})
        return f"{text} {as_text(ids)}" if ids and not isinstance(record.msg, LogRecordLine) else text


class JsonFormatter(logging.Formatter):
    """One object per line: timestamp, level, logger, and what the record tells."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            **self.told(record),
        }
        return as_json(covered(line))

    def told(self, record: logging.LogRecord) -> dict[str, Any]:
        """`message`; then the fields of the line, or the ids of the step that wrote it and its `fields`; `exception`
        and `stack`. Not `covered`."""
        line = _told(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return line


def as_json(told: Any) -> str:
    """Data that are covered as JSON; what is none becomes text, and is covered there."""
    return json.dumps(told, ensure_ascii=False, default=lambda value: covered(str(value)))


def _told(record: logging.LogRecord) -> dict[str, Any]:
    if isinstance(line := record.msg, LogRecordLine):
        return {"message": line.phrase, **line.fields, **({"exception": line.detail} if line.detail else {})}
    fields = getattr(record, "fields", None)
    told = {"message": record.getMessage(), **getattr(record, "step", {})}
    return {**told, "fields": fields} if fields else told


def covered(told: Any) -> Any:
    """A text or data without the sensitive values that the step knows whose handler runs here."""
    cover = covering.get()
    return told if cover is None else cover(told)


FORMATTERS: Mapping[str, Callable[[], logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


def cover_warnings() -> None:
    """What Python writes where nobody has set up logging holds nothing sensitive either."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(BareFormatter())


def log_to_stderr(levels: Levels, form: str) -> None:
    """Write the records of this process from these levels on, unless somebody has set up logging already.

    The migrations' chatter is left out, unless it is asked for.
    """
    handler = logging.StreamHandler()
    if levels.of:
        handler.addFilter(ShownFilter(levels))
    handler.addFilter(StepFilter())
    handler.setFormatter(FORMATTERS[form]())
    logging.basicConfig(level=levels.default, handlers=[handler])
    for name, level in {"alembic": logging.WARNING, **levels.of}.items():
        logging.getLogger(name).setLevel(level)


def write_as(form: str) -> None:
    """From here on what `log_to_stderr` has set up writes in this form."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, TextFormatter | JsonFormatter):
            handler.setFormatter(FORMATTERS[form]())


def log_as_parent(environ: Mapping[str, str] = os.environ) -> None:
    """In a child process: as its parent was told to, which it says by the variables."""
    if environ.get(LEVEL_VARIABLE) or environ.get(FORMAT_VARIABLE):
        log_to_stderr(_levels_of_parent(environ), environ.get(FORMAT_VARIABLE, "text"))


def _levels_of_parent(environ: Mapping[str, str]) -> Levels:
    try:
        return levels_named(environ) or Levels(logging.WARNING)
    except UsageError:  # a program that sets up its own log has not looked at it, and its steps must not fail for it
        return Levels(logging.WARNING)
