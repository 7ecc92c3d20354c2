"""What the handlers of a worker have said and is not stored yet: bounded, and filled from any thread."""

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
"""Lines that wait to be stored; what comes while there are as many is dropped, and counted."""


@dataclass(frozen=True, slots=True)
class StoredLogLine:
    """A line of an attempt; `number` counts those of one claim from 1."""

    claim: Claim
    number: int
    line: LogLine


@dataclass(frozen=True, slots=True)
class HandlerOutput:
    """What is to be stored together."""

    lines: Sequence[StoredLogLine]
    progress: Sequence[tuple[Claim, ProgressReport]]

    def halves(self) -> tuple[HandlerOutput, HandlerOutput]:
        """The same as two, of which none is empty where there is more than one thing."""
        if self.lines and self.progress:
            return HandlerOutput(self.lines, ()), HandlerOutput((), self.progress)
        lines, progress = len(self.lines) // 2, len(self.progress) // 2
        return HandlerOutput(self.lines[:lines], self.progress[:progress]), HandlerOutput(
            self.lines[lines:], self.progress[progress:]
        )


class ReportBuffer:
    """Takes what attempts say, until it is written. `level` is the lowest of logging that is kept, None keeps no lines;
    of one claim `lines` are kept."""

    def __init__(self, level: int | None, lines: int) -> None:
        self.level, self.most_lines = level, lines
        self.dropped = 0
        """Lines that came while the buffer was full, or were refused by the database, since the start."""
        self._lines: list[StoredLogLine] = []
        self._progress: dict[str, tuple[Claim, ProgressReport]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._filled = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def of(self, claim: Claim) -> AttemptReporter:
        """Where one attempt says it. Called on the event loop."""
        self._loop = asyncio.get_running_loop()
        return AttemptReporter(self, claim)

    async def filled(self) -> None:
        """Return when there is something to store."""
        await self._filled.wait()

    def take(self, most: int) -> HandlerOutput:
        """What is to be stored now, at most so many lines. The caller gives back what it could not store."""
        with self._lock:
            lines, self._lines = self._lines[:most], self._lines[most:]
            progress, self._progress = list(self._progress.values()), {}
            if not self._lines:
                self._filled.clear()
        return HandlerOutput(lines, progress)

    def give_back(self, said: HandlerOutput) -> None:
        """It could not be stored: it comes again, behind nothing, unless it is outdated."""
        with self._lock:
            self._lines[:0] = said.lines
            self._progress = {**{claim.step_uuid: (claim, report) for claim, report in said.progress}, **self._progress}
            self._filled.set()

    def drop(self, lines: int) -> None:
        """So many lines will never be stored."""
        with self._lock:
            self.dropped += lines

    def add_line(self, line: StoredLogLine) -> None:
        """Keep a line, unless there are too many."""
        if self._is_copy():
            return
        with self._lock:
            if len(self._lines) >= CAPACITY:
                self.dropped += 1
                return
            self._lines.append(line)
        self._wake()

    def add_progress(self, claim: Claim, report: ProgressReport) -> None:
        """Keep how far a step is, in place of what it said before."""
        if self._is_copy():
            return
        with self._lock:
            self._progress[claim.step_uuid] = (claim, report)
        self._wake()

    def _is_copy(self) -> bool:
        """In a copy that a handler has forked the lock may be held by a thread that is not there, and nobody writes."""
        return os.getpid() != self._process

    def _wake(self) -> None:
        if self._loop is not None and not self._filled.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._filled.set)


class AttemptReporter:
    """What one attempt says, numbered and counted."""

    __slots__ = ("_buffer", "_claim", "_numbers", "_printed")

    def __init__(self, buffer: ReportBuffer, claim: Claim) -> None:
        self._buffer, self._claim = buffer, claim
        self._numbers: Iterator[int] | None = None
        self._printed: PrintedLines | None = None

    @property
    def level(self) -> int | None:
        """From which level on lines are kept."""
        return self._buffer.level

    def log(self, line: LogLine) -> None:
        """Keep the line, if its level is kept; the last that is kept says that there were more."""
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
        """Keep the lines that this ends."""
        if self._buffer.level is None:
            return
        if self._printed is None:
            self._printed = PrintedLines()
        for line in self._printed.write(text):
            self.log(line)

    def progress(self, report: ProgressReport) -> None:
        """Keep the latest, without sensitive values that the step knows."""
        self._buffer.add_progress(self._claim, covered(report))

    def flush(self) -> None:
        """Keep the line that was begun."""
        if self._printed is not None:
            for line in self._printed.end():
                self.log(line)
