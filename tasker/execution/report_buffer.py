"""Bounded buffer of log lines, progress and events that are not stored yet, also of child processes."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import NotStorable
from tasker.handlers.claims import Claim
from tasker.json_values import as_stored, encode
from tasker.logging.current_step import LogLine, ProgressReport, covering

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
    content, cover = {"message": line.message, "fields": line.fields}, covering.get()
    if cover is not None:
        content = cover(content)
    message, fields = _text(str(content["message"])), _fields(content["fields"])
    at = line.at if 0 <= line.at < YEAR_10_000 else time.time()
    level = max(-HIGHEST_LEVEL, min(line.level, HIGHEST_LEVEL))
    return LogLine(at, level, _text(line.logger, 200), message, fields)


def redacted_progress(report: ProgressReport) -> ProgressReport:
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


CAPACITY = 20_000
"""Capacity in lines; further lines are dropped and counted."""


@dataclass(frozen=True, slots=True)
class StoredLogLine:
    """A line of an attempt; `number` counts the lines of one claim from 1."""

    claim: Claim
    number: int
    line: LogLine


@dataclass(frozen=True, slots=True)
class HandlerOutput:
    """Output that is stored in one write."""

    lines: Sequence[StoredLogLine]
    progress: Sequence[tuple[Claim, ProgressReport]]

    def halves(self) -> tuple[HandlerOutput, HandlerOutput]:
        """Split the output in two halves, neither of which is empty if there is more than one item."""
        if self.lines and self.progress:
            return HandlerOutput(self.lines, ()), HandlerOutput((), self.progress)
        lines, progress = len(self.lines) // 2, len(self.progress) // 2
        return HandlerOutput(self.lines[:lines], self.progress[:progress]), HandlerOutput(
            self.lines[lines:], self.progress[progress:]
        )


class ReportBuffer:
    """Buffer of the output of attempts.

    `level` is the lowest `logging` level that is stored, or None to store no lines; `lines` is the largest number of
    lines stored per claim.
    """

    def __init__(self, level: int | None, lines: int) -> None:
        self.level, self.most_lines = level, lines
        self.dropped = 0
        """Number of lines dropped since the start because the buffer was full or the database refused them."""
        self._lines: list[StoredLogLine] = []
        self._progress: dict[str, tuple[Claim, ProgressReport]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._filled = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def of(self, claim: Claim) -> AttemptReporter:
        """Return the reporter of one attempt. Call it on the event loop."""
        self._loop = asyncio.get_running_loop()
        return AttemptReporter(self, claim)

    def held(self, claim: Claim) -> HeldReporter:
        """Return the reporter of an attempt that runs ahead of its claim. Call it on the event loop."""
        self._loop = asyncio.get_running_loop()
        return HeldReporter(self, claim)

    async def filled(self) -> None:
        await self._filled.wait()

    def take(self, most: int) -> HandlerOutput:
        """Take the output to store now, up to `most` lines. The caller gives back what it could not store."""
        with self._lock:
            lines, self._lines = self._lines[:most], self._lines[most:]
            progress, self._progress = list(self._progress.values()), {}
            if not self._lines:
                self._filled.clear()
        return HandlerOutput(lines, progress)

    def give_back(self, output: HandlerOutput) -> None:
        """Put output back that could not be stored; progress that is outdated is dropped."""
        with self._lock:
            self._lines[:0] = output.lines
            self._progress = {
                **{claim.step_uuid: (claim, report) for claim, report in output.progress},
                **self._progress,
            }
            self._filled.set()

    def drop(self, lines: int) -> None:
        """Count lines that will never be stored."""
        with self._lock:
            self.dropped += lines

    def add_line(self, line: StoredLogLine) -> None:
        """Add a line, or drop it when the buffer is full."""
        if self._is_copy():
            return
        with self._lock:
            if len(self._lines) >= CAPACITY:
                self.dropped += 1
                return
            self._lines.append(line)
        self._wake()

    def add_progress(self, claim: Claim, report: ProgressReport) -> None:
        """Set the progress of a step, in place of an earlier one."""
        if self._is_copy():
            return
        with self._lock:
            self._progress[claim.step_uuid] = (claim, report)
        self._wake()

    def _is_copy(self) -> bool:
        """Return True in a copy forked by a handler: nothing writes there, and the lock may be locked for good."""
        return os.getpid() != self._process

    def _wake(self) -> None:
        if self._loop is not None and not self._filled.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._filled.set)


class AttemptReporter:
    """Reporter of the output of one attempt, which numbers and counts its lines."""

    __slots__ = ("_buffer", "_claim", "_numbers", "_printed")

    def __init__(self, buffer: ReportBuffer, claim: Claim) -> None:
        self._buffer, self._claim = buffer, claim
        self._numbers: Iterator[int] | None = None
        self._printed: PrintedLines | None = None

    @property
    def level(self) -> int | None:
        return self._buffer.level

    def log(self, line: LogLine) -> None:
        """Add the line if its level is stored. The last line below the limit says that there were more."""
        level, most = self._buffer.level, self._buffer.most_lines
        if level is None or line.level < level:
            return
        if self._numbers is None:
            self._numbers = itertools.count(1)
        number = next(self._numbers)
        if number == most:
            text = f"there may be more lines: of each attempt {most:,} are kept (worker.execution.kept_log_lines)"
            line = LogLine(line.at, line.level, "tasker", text)
        if number <= most:
            self._add(StoredLogLine(self._claim, number, storable(line)))

    def _add(self, line: StoredLogLine) -> None:
        self._buffer.add_line(line)

    def printed(self, text: str) -> None:
        """Add the lines that this text completes."""
        if self._buffer.level is None:
            return
        if self._printed is None:
            self._printed = PrintedLines()
        for line in self._printed.write(text):
            self.log(line)

    def progress(self, report: ProgressReport) -> None:
        """Set the latest progress, redacted."""
        self._buffer.add_progress(self._claim, redacted_progress(report))

    def flush(self) -> None:
        """Add the unfinished printed line."""
        if self._printed is not None:
            for line in self._printed.end():
                self.log(line)


class HeldReporter(AttemptReporter):
    """Reporter of an attempt that runs ahead: the attempt that follows, should it not count, numbers its lines anew.

    Its progress is never shown.
    """

    __slots__ = ("_held",)

    def __init__(self, buffer: ReportBuffer, claim: Claim) -> None:
        super().__init__(buffer, claim)
        self._held: list[StoredLogLine] | None = []

    def _add(self, line: StoredLogLine) -> None:
        held = self._held
        self._buffer.add_line(line) if held is None else held.append(line)

    def progress(self, report: ProgressReport) -> None:
        """Do nothing: the step has no claim."""

    def release(self) -> None:
        """Store the lines: the result of the attempt was stored."""
        held, self._held = self._held or [], None
        for line in held:
            self._buffer.add_line(line)


class ChildReporter:
    """Reporter of one handler call in this child, which sends its output to the parent."""

    def __init__(self, level: int | None, send: Callable[[LogLine | ProgressReport], None]) -> None:
        self.level, self._send = level, send
        self._printed = PrintedLines()

    def log(self, line: LogLine) -> None:
        """Send the line if its level is stored."""
        if self.level is not None and line.level >= self.level:
            self._send(storable(line))

    def printed(self, text: str) -> None:
        """Send the lines that this text completes."""
        for line in self._printed.write(text):
            self.log(line)

    def progress(self, report: ProgressReport) -> None:
        """Send the progress, redacted."""
        self._send(redacted_progress(report))

    def flush(self) -> None:
        """Send the unfinished printed line."""
        for line in self._printed.end():
            self.log(line)
