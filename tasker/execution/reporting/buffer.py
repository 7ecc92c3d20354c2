"""Bounded buffer of handler output waiting to be stored, filled from any thread."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Iterator, Sequence

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.execution import Claim
from tasker.contracts.reporting import LogLine, ProgressReport
from tasker.execution.reporting.lines import PrintedLines, covered, storable

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

    def give_back(self, said: HandlerOutput) -> None:
        """Put output back that could not be stored; progress that is outdated is dropped."""
        with self._lock:
            self._lines[:0] = said.lines
            self._progress = {**{claim.step_uuid: (claim, report) for claim, report in said.progress}, **self._progress}
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
            self._buffer.add_line(StoredLogLine(self._claim, number, storable(line)))

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
        self._buffer.add_progress(self._claim, covered(report))

    def flush(self) -> None:
        """Add the unfinished printed line."""
        if self._printed is not None:
            for line in self._printed.end():
                self.log(line)
