"""Lines as they are kept: bounded, and such as the database takes."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

from tasker.contracts.reporting import LogLine, ProgressReport
from tasker.contracts.running import covering
from tasker.errors import NotStorable
from tasker.lifecycle.storable import encode

LONGEST_MESSAGE = 8_192
"""Characters."""
LARGEST_FIELDS = 8_192
"""Bytes of JSON."""
PRINTED = "stdout"
"""The logger of what was printed."""
LEFT_OUT = {"left_out": f"fields that are no JSON, or more than {LARGEST_FIELDS:,} bytes of it"}


class PrintedLines:
    """Makes lines of what is written piece by piece."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open = ""

    def write(self, text: str) -> list[LogLine]:
        """The lines that this ends."""
        *lines, self._open = (self._open + text).split("\n")
        if len(self._open) > LONGEST_MESSAGE:
            lines.append(self._open)
            self._open = ""
        return [_printed(line) for line in lines]

    def end(self) -> list[LogLine]:
        """The line that was begun, if any."""
        return self.write("\n") if self._open else []


def _printed(text: str) -> LogLine:
    return LogLine(time.time(), logging.INFO, PRINTED, text.removesuffix("\r"))


def storable(line: LogLine) -> LogLine:
    """The line without sensitive values that its step knows and without what PostgreSQL refuses, and not too long."""
    told, cover = {"message": line.message, "fields": line.fields}, covering.get()
    if cover is not None:
        told = cover(told)
    message, fields = _text(str(told["message"])), _fields(told["fields"])
    return replace(line, logger=_text(line.logger, 200), message=message, fields=fields)


def covered(report: ProgressReport) -> ProgressReport:
    """The report without sensitive values that its step knows."""
    cover = covering.get()
    return report if cover is None or report.message is None else replace(report, message=cover(report.message))


def _text(text: str, longest: int = LONGEST_MESSAGE) -> str:
    clean = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    if len(clean) <= longest:
        return clean
    return f"{clean[:longest]}... ({len(clean) - longest:,} characters more)"


def _fields(fields: Any) -> Any:
    if not fields:
        return None
    try:
        encode(fields, limit_bytes=LARGEST_FIELDS)
    except NotStorable:
        return LEFT_OUT
    return dict(fields)
