"""Failure bursts: a step that fails too often is paused, so that an operator can check before more is lost.

Failures are counted in the database over all workers, unlike the breakers around handlers, which are local to a worker.
"""

from __future__ import annotations

import logging
from collections import Counter

from tasker.engine.calls import Args, Engine
from tasker.engine.exchange import MARK_SLICE
from tasker.settings.breakers import FailureStorm

_log = logging.getLogger("tasker.orchestration")


class FailureBurstMonitor:
    """Monitor of failure bursts: pauses their scope, and resumes it after its time."""

    def __init__(self, engine: Engine, settings: FailureStorm) -> None:
        self._engine, self._settings = engine, settings
        self.paused: Counter[str] = Counter()
        """Number of pauses by target, in this process."""

    async def check(self) -> None:
        """Check for bursts; any number of processes may do so at the same time."""
        settings = self._settings
        if not settings.failures:
            return
        args = {
            "failures": settings.failures,
            "window_seconds": settings.window_seconds,
            "pauses": settings.pauses,
            "resume_seconds": settings.resume_seconds,
            "slice": MARK_SLICE,
        }
        while await self._act(args):
            pass

    async def _act(self, args: Args) -> bool:
        """Begin or end one pause; return True when there may be more to do."""
        answer = await self._engine.call("failure_bursts", args)
        for storm in answer.get("paused") or ():
            self.paused[storm["target"]] += 1
            _log.error("failure_storm paused=%s reason=%s", storm["target"], storm["reason"])
        for target in answer.get("resumed") or ():
            _log.warning("failure_storm_over resumed=%s", target)
        return bool(answer.get("more"))
