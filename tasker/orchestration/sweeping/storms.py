"""Failure storms: the same step failing too often is paused, so that a person looks before more is lost.

Counted in the database over all workers, unlike the breakers around handlers, each of which is one worker's own.
"""

from __future__ import annotations

import logging
from collections import Counter

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.sweeping import STORM_PAUSES, STORM_WINDOW_SECONDS
from tasker.services.engine.calls import Args, Engine

_log = logging.getLogger("tasker.orchestration")


@dataclass(frozen=True, slots=True)
class FailureBurstSettings:
    """When failures are a storm, and what is paused then."""

    failures: int = 0
    """More failed attempts of one step of a template than this, within the window. 0: never."""
    window_seconds: int = STORM_WINDOW_SECONDS
    pauses: str = STORM_PAUSES
    """`namespace`, `template` or `step`: how much is paused."""
    resume_seconds: int = 0
    """After this time the pause ends by itself. 0: a person ends it."""


class FailureBurstMonitor:
    """Looks for storms, pauses what they are in, and resumes it when its time is over."""

    def __init__(self, engine: Engine, settings: FailureBurstSettings) -> None:
        self._engine, self._settings = engine, settings
        self.paused: Counter[str] = Counter()
        """Pauses by what was paused, of this process."""

    async def look(self) -> None:
        """One look; any number of processes may look at the same time."""
        settings = self._settings
        if not settings.failures:
            return
        args = {
            "failures": settings.failures,
            "window_seconds": settings.window_seconds,
            "pauses": settings.pauses,
            "resume_seconds": settings.resume_seconds,
        }
        while await self._act(args):
            pass

    async def _act(self, args: Args) -> bool:
        """Begin or end one pause; True when there may be more to do."""
        answer = await self._engine.call("storms", args)
        for storm in answer.get("paused") or ():
            self.paused[storm["target"]] += 1
            _log.error("failure_storm paused=%s reason=%s", storm["target"], storm["reason"])
        for target in answer.get("resumed") or ():
            _log.warning("failure_storm_over resumed=%s", target)
        return bool(answer.get("more"))
