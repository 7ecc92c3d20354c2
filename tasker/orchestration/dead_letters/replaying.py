"""Replays of dead letters, continued by every sweep."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from tasker.contracts.defaults import REPLAY_STEPS
from tasker.errors import LockTimeout, StatementTimeout
from tasker.services.engine.answers import ReplayAnswer
from tasker.services.engine.calls import Engine
from tasker.services.engine.exchange import CompletingWorker, OnAdvanced

TURNS = 50
"""Largest number of transactions per sweep, and steps per transaction: other repairs must not wait long."""
_log = logging.getLogger("tasker.orchestration")


class ReplaySweep:
    """Part of a sweep that continues all running replays with what is due."""

    def __init__(self, engine: Engine, on_advanced: OnAdvanced = lambda _: None) -> None:
        self._engine, self._on_advanced = engine, on_advanced

    async def look(self, caller: CompletingWorker, between: Callable[[], Awaitable[None]] | None = None) -> None:
        """Replay what the rates allow, for a while; the next sweep continues. Call `between` after each transaction."""
        last: ReplayAnswer | None = None
        args = {"window": caller.window, "steps": REPLAY_STEPS}
        try:
            for _ in range(TURNS):
                answer = await self._engine.call_typed("replay", args, ReplayAnswer)
                # other transactions have the tasks locked
                if not answer.replay or (last and not answer.done and not last.done):
                    break
                self._on_advanced(answer)
                last = answer
                if between is not None:
                    await between()
        except (LockTimeout, StatementTimeout) as error:
            _log.warning("replay_skipped reason=%s", error)
