"""Replays of dead letters, which every sweep goes on with."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from tasker.errors import LockTimeout, StatementTimeout
from tasker.services.engine.answers import ReplayAnswer
from tasker.services.engine.calls import Engine
from tasker.services.engine.exchange import CompletingWorker, OnAdvanced

TURNS, STEPS = 50, 1000
"""So many transactions at most in one sweep, each of about so many steps: nothing else that it mends waits for long."""
_log = logging.getLogger("tasker.orchestration")


class ReplaySweep:
    """Goes on with what is due of every running replay."""

    def __init__(self, engine: Engine, on_advanced: OnAdvanced = lambda _: None) -> None:
        self._engine, self._on_advanced = engine, on_advanced

    async def look(self, caller: CompletingWorker, between: Callable[[], Awaitable[None]] | None = None) -> None:
        """As far as the rates allow, for a while: the next sweep goes on. `between` is called after each turn."""
        last: ReplayAnswer | None = None
        args = {"window": caller.window, "steps": STEPS}
        try:
            for _ in range(TURNS):
                answer = await self._engine.call_typed("replay", args, ReplayAnswer)
                if not answer.replay or (last and not answer.done and not last.done):  # others hold their tasks
                    break
                self._on_advanced(answer)
                last = answer
                if between is not None:
                    await between()
        except (LockTimeout, StatementTimeout) as error:
            _log.warning("replay_skipped reason=%s", error)
