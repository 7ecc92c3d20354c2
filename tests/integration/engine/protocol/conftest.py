"""The engine's Python side on the lab's database: over real connections, with the default messaging backend."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult, CompletingWorker, Result
from tasker.engine.plans import PlanStore
from tasker.handlers.claims import Claim, Failure, Success
from tasker.json_values import JsonText
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper, SweepSettings
from tasker.settings.execution import Sweep
from tasker.template.plan import Plan
from tests.support.engine_fixture import Item, Lab

AT_ONCE = SweepSettings(Sweep(hint_grace_ms=0, park_grace_ms=0, idle_grace_ms=0), repair_ms=0)
"""A sweep without patience: whatever is not exactly right at this moment would be found."""


def at_once(**ages: Any) -> SweepSettings:
    """That sweep with other ages."""
    return replace(AT_ONCE, ages=AT_ONCE.ages.replace(**ages))


@dataclass(frozen=True)
class Orchestra:
    """What a process runs beside its workers, on one connection."""

    lab: Lab
    engine: Engine
    processor: ResultProcessor
    sweeper: Sweeper
    advanced: list[AdvanceResult] = field(default_factory=list, kw_only=True)
    """What the engine answered to the sweeper."""

    def caller(self, slots: int = 0) -> CompletingWorker:
        return CompletingWorker(self.lab.one.worker, slots, [self.lab.namespace_id], window=self.lab.window)

    async def sweep(self) -> Counter[str]:
        """The repairs of one sweep, by kind; kinds without a repair are left out."""
        return +await self.sweeper.sweep(self.caller())

    async def process(self, *results: Result, slots: int = 0, wait: bool = True) -> Any:
        return await self.processor.process(results, self.caller(slots), wait=wait)


@pytest.fixture
async def orchestra(lab: Lab) -> AsyncIterator[Orchestra]:
    connection = Connection(lab.url)
    engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
    processor = ResultProcessor(engine, random.Random(1))
    advanced: list[AdvanceResult] = []
    sweeper = Sweeper(engine, processor, PlanStore(connection), random.Random(2), AT_ONCE, advanced.append)
    yield Orchestra(lab, engine, processor, sweeper, advanced=advanced)
    await connection.close()


def result_of(plan: Plan, claim: Item, result: Any = None, *, failure: Failure | None = None) -> Result:
    """What a worker brings to the processor for a claim."""
    step = plan.steps[claim["ordinal"]]
    held = Claim(
        step_uuid=claim["step"],
        task_uuid=claim["task"],
        name=claim["name"],
        template=claim["template"],
        ordinal=step.ordinal,
        namespace=plan.namespace,
        token=claim["token"],
        attempt=claim["attempt"],
        max_attempts=step.retry.max_attempts,
        correlation_id=claim["task"],
    )
    if failure is not None:
        return Result(held, plan, 5, failure)
    value = {"by": claim["name"]} if result is None else result
    return Result(held, plan, 5, Success(JsonText(json.dumps(value))))
