"""What a handler in a child process says goes to its parent, which counts and stores it."""

from __future__ import annotations

from collections.abc import Callable

from tasker.contracts.reporting import LogLine, ProgressReport
from tasker.execution.reporting.lines import PrintedLines, covered, storable


class ChildReporter:
    """Takes what one call of a handler says in this child, and sends it on."""

    def __init__(self, level: int | None, send: Callable[[LogLine | ProgressReport], None]) -> None:
        self.level, self._send = level, send
        self._printed = PrintedLines()

    def log(self, line: LogLine) -> None:
        """Send the line, if its level is kept."""
        if self.level is not None and line.level >= self.level:
            self._send(storable(line))

    def printed(self, text: str) -> None:
        """Send the lines that this ends."""
        for line in self._printed.write(text):
            self.log(line)

    def progress(self, report: ProgressReport) -> None:
        """Send it, without sensitive values that the step knows."""
        self._send(covered(report))

    def flush(self) -> None:
        """Send the line that was begun."""
        for line in self._printed.end():
            self.log(line)
