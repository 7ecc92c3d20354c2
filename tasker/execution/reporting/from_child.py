"""Output of a handler in a child process, sent to the parent, which counts and stores it."""

from __future__ import annotations

from collections.abc import Callable

from tasker.contracts.reporting import LogLine, ProgressReport
from tasker.execution.reporting.lines import PrintedLines, covered, storable


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
        self._send(covered(report))

    def flush(self) -> None:
        """Send the unfinished printed line."""
        for line in self._printed.end():
            self.log(line)
