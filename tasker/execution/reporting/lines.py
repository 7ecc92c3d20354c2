"""Log lines in their stored form: bounded, redacted, and valid for PostgreSQL."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

from tasker.contracts.reporting import LogLine, ProgressReport
from tasker.contracts.running import covering
from tasker.errors import NotStorable
from tasker.lifecycle.storable import as_stored, encode

LONGEST_MESSAGE = 8_192
"""Largest length of a message in characters."""
LARGEST_FIELDS = 8_192
"""Largest size of a line's fields in bytes of JSON."""
PRINTED = "stdout"
"""Logger name of printed lines."""
HIGHEST_LEVEL = 32_767
"""Largest level that the database column can store."""
YEAR_10_000 = 253_402_300_800.0
"""End of the supported time range, in seconds since 1970."""
FLAT = {str, int, float, bool, type(None)}
LEFT_OUT = {"left_out": f"fields that are no JSON, or more than {LARGEST_FIELDS:,} bytes of it"}


class PrintedLines:
    """Splitter of text that is written piece by piece into lines."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open = ""

    def write(self, text: str) -> list[LogLine]:
        """Return the lines that this text completes."""
        *lines, self._open = (self._open + text).split("\n")
        if len(self._open) > LONGEST_MESSAGE:
            lines.append(self._open)
            self._open = ""
        return [_printed(line) for line in lines]

    def end(self) -> list[LogLine]:
        """Return the unfinished line, if any."""
        return self.write("\n") if self._open else []


def _printed(text: str) -> LogLine:
    return LogLine(time.time(), logging.INFO, PRINTED, text.removesuffix("\r"))


def storable(line: LogLine) -> LogLine:
    """Return the line redacted, without characters that PostgreSQL refuses, and cut to the limits.

    The result shares no mutable object with the handler, which may change its arguments before the line is stored.
    """
    told, cover = {"message": line.message, "fields": line.fields}, covering.get()
    if cover is not None:
        told = cover(told)
    message, fields = _text(str(told["message"])), _fields(told["fields"])
    at = line.at if 0 <= line.at < YEAR_10_000 else time.time()
    level = max(-HIGHEST_LEVEL, min(line.level, HIGHEST_LEVEL))
    return LogLine(at, level, _text(line.logger, 200), message, fields)


def covered(report: ProgressReport) -> ProgressReport:
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
    if not isinstance(fields, dict):
        return LEFT_OUT
    try:
        encoded = encode(fields, limit_bytes=LARGEST_FIELDS)
    except (NotStorable, RuntimeError):  # another thread of the handler changes the fields right now
        return LEFT_OUT
    return dict(fields) if FLAT.issuperset(map(type, fields.values())) else as_stored(encoded)
