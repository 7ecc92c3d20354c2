"""Writer of handler output: at most one write per second, in the background."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from tasker.clock import BackoffPolicy
from tasker.db.connection import DataRefused
from tasker.engine.calls import Engine
from tasker.errors import DatabaseError
from tasker.execution.report_buffer import HandlerOutput, ReportBuffer, StoredLogLine
from tasker.handlers.claims import Claim
from tasker.logging.current_step import ProgressReport
from tasker.logging.lines import ids_of, log_line

MOST = 2_000
"""Largest number of lines in one write."""
PAUSE_SECONDS = 1.0
"""Pause between two writes, in seconds."""
FAILED = BackoffPolicy(1.0, 15.0)
REFUSED = (DataRefused, TypeError, ValueError, ArithmeticError, RecursionError)
"""Errors caused by the content of a report, raised here or by the database: retrying would not help."""
_log = logging.getLogger("tasker.execution")


class ReportWriter:
    """Writer of a worker's buffer of handler output. Output that cannot be stored stays in the buffer."""

    def __init__(self, buffer: ReportBuffer, engine: Engine, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._buffer, self._engine, self._pause = buffer, engine, pause_seconds
        self._told = 0

    async def run(self) -> None:
        """Write until cancelled."""
        failures = 0
        while True:
            await self._buffer.filled()
            try:
                await self.write()
                failures = 0
                await asyncio.sleep(self._pause)
            except DatabaseError:  # the process logs database outages elsewhere
                await asyncio.sleep(FAILED.pause(failures))
                failures += 1

    async def write(self) -> None:
        """Store buffered output, up to `MOST` lines; refused items are dropped.

        Raises `DatabaseError`, and puts the output back into the buffer.
        """
        output = self._buffer.take(MOST)
        try:
            if output.lines or output.progress:
                await self._store(output)
        except BaseException:
            self._buffer.give_back(output)
            raise
        self._tell_of_dropped()

    async def _store(self, output: HandlerOutput) -> None:
        """Store the output, halving refused batches down to the refused item: one bad line must not lose the others."""
        try:
            await self._engine.read("report", _arguments(output, time.time()))
        except REFUSED as error:
            if len(output.lines) + len(output.progress) == 1:
                return self._drop(output, error)
            for half in output.halves():
                await self._store(half)

    def _drop(self, output: HandlerOutput, error: Exception) -> None:
        (claim,) = [*(line.claim for line in output.lines), *(claim for claim, _ in output.progress)]
        log_line(_log, logging.WARNING, "step_report_refused", {**ids_of(claim), "error": str(error)[:500]})
        self._buffer.drop(len(output.lines))

    def _tell_of_dropped(self) -> None:
        if self._buffer.dropped > self._told:
            _log.warning(
                "step_logs_dropped lines=%s: more is said than can be stored, or what cannot be",
                self._buffer.dropped - self._told,
            )
            self._told = self._buffer.dropped


def _arguments(output: HandlerOutput, now: float) -> Mapping[str, Any]:
    """Send times as ages: the database's clock is authoritative."""
    return {
        "lines": [_line(line, now) for line in output.lines],
        "progress": [_progress(*entry) for entry in output.progress],
    }


def _line(stored: StoredLogLine, now: float) -> Mapping[str, Any]:
    line = stored.line
    return {
        **_claimed(stored.claim),
        "number": stored.number,
        "ago_ms": round((now - line.at) * 1000, 3),
        "level": line.level,
        "logger": line.logger,
        "message": line.message,
        "fields": line.fields,
    }


def _progress(claim: Claim, report: ProgressReport) -> Mapping[str, Any]:
    return {
        **_claimed(claim),
        "fraction": report.fraction,
        "done": report.done,
        "total": report.total,
        "message": report.message,
    }


def _claimed(claim: Claim) -> Mapping[str, Any]:
    return {"task": claim.task_uuid, "step": claim.step_uuid, "token": claim.token, "attempt": claim.attempt}
