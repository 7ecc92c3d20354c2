"""Repairs of a sweep on request of an operator."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweeping.sweep import Sweeper, SweepSettings
from tasker.process.system import new_uuid
from tasker.services.engine.calls import Engine
from tasker.services.engine.exchange import AdvanceResult, CompletingWorker
from tasker.services.engine.plans import PlanStore


class Repairs:
    """A sweep of everything, with the same functions, guards and counters as the periodic sweep."""

    def __init__(self, engine: Engine, plans: PlanStore, settings: SweepSettings) -> None:
        self._engine = engine
        everything = replace(settings, mend_ms=0, whole=True)
        self._woken = set[str]()
        self._sweeper = Sweeper(engine, ResultProcessor(engine, random), plans, random, everything, self._advanced)

    async def run(self) -> Counter[str]:
        """Repair everything inconsistent; return the number by kind, as `tasker.repairs` counts it.

        Raises `DatabaseError`; repairs made before that remain.
        """
        repaired = await self._sweeper.sweep(CompletingWorker(new_uuid()))
        if self._woken:
            await self._engine.wake(self._woken)
        return +repaired

    def _advanced(self, advanced: AdvanceResult) -> None:
        self._woken |= {*advanced.sent}
