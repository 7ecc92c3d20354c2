"""Log of a process on standard error: text for people, or one JSON object per line for programs.

Every line that is written while a handler runs carries its task and step, whichever logger wrote it, and contains none
of the sensitive values that the step knows.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tasker.errors import UsageError
from tasker.known_secrets import KNOWN
from tasker.logging.current_step import covering, running
from tasker.logging.levels import LEVEL_VARIABLE, Levels, ShownFilter, levels_named
from tasker.logging.lines import LogRecordLine, as_text, ids_of

FORMAT_VARIABLE = "TASKER_LOG_FORMAT"
FORMATS = ("text", "json")
TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class StepFilter(logging.Filter):
    """Sets `record.step`: the ids of the step whose handler writes the record, or {} outside a handler.

    Attach it to logging handlers whose formatter uses the attribute; it lets every record pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        claim = running.get()
        record.step = {} if claim is None else ids_of(claim)
        return True


class BareFormatter(logging.Formatter):
    """Formats the redacted message with an exception below it."""

    def format(self, record: logging.LogRecord) -> str:
        text: str = redact_line(super().format(record))
        return text


class TextFormatter(BareFormatter):
    """Formats time, level, logger and message, then the ids of the step that wrote it, with an exception below."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        text, ids = super().formatMessage(record), getattr(record, "step", {})
        return f"{text} {as_text(ids)}" if ids and not isinstance(record.msg, LogRecordLine) else text


class JsonFormatter(logging.Formatter):
    """Formats one JSON object per line: timestamp, level, logger, and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            **self.fields_of(record),
        }
        return as_json(redact_line(line))

    def fields_of(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return `message`, then the line's own fields or the step's ids and `fields`, then `exception` and `stack`.

        The values are not redacted yet.
        """
        line = _own_fields(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return line


def as_json(record: Any) -> str:
    """Return redacted data as JSON; a value that JSON lacks becomes text, which is redacted here."""
    return json.dumps(record, ensure_ascii=False, default=lambda value: redact_line(str(value)))


def _own_fields(record: logging.LogRecord) -> dict[str, Any]:
    if isinstance(line := record.msg, LogRecordLine):
        return {"message": line.phrase, **line.fields, **({"exception": line.detail} if line.detail else {})}
    fields = getattr(record, "fields", None)
    entry = {"message": record.getMessage(), **getattr(record, "step", {})}
    return {**entry, "fields": fields} if fields else entry


def redact_line(value: Any) -> Any:
    """Return the text or data without secrets and the sensitive values known to the step whose handler runs here."""
    cover = covering.get()
    return KNOWN.redact(value) if cover is None else cover(value)


FORMATTERS: Mapping[str, Callable[[], logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


def redact_warnings() -> None:
    """Redact what Python itself writes to standard error when logging is not set up."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(BareFormatter())


def log_to_stderr(levels: Levels, form: str) -> None:
    """Write the records of this process from these levels on, unless logging has been set up already.

    Records of migrations (alembic) start at WARNING unless a level for them is given.
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
    """Change the format of the handlers that `log_to_stderr` set up."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, TextFormatter | JsonFormatter):
            handler.setFormatter(FORMATTERS[form]())


def log_as_parent(environ: Mapping[str, str] = os.environ) -> None:
    """Set up logging in a child process with its parent's level and format, read from environment variables."""
    if environ.get(LEVEL_VARIABLE) or environ.get(FORMAT_VARIABLE):
        log_to_stderr(_levels_of_parent(environ), environ.get(FORMAT_VARIABLE, "text"))


def _levels_of_parent(environ: Mapping[str, str]) -> Levels:
    try:
        return levels_named(environ) or Levels(logging.WARNING)
    except UsageError:  # a program with its own logging never validated the variable; its steps must not fail for it
        return Levels(logging.WARNING)
