"""The processor and the inboxes of an orchestrator, on a database that answers as a test says."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest

from tasker.db.connection import DataRefused
from tasker.engine.calls import Engine
from tasker.engine.changes import StepChange
from tasker.engine.exchange import CompletingWorker, Result
from tasker.engine.fleet_rules import FleetRules
from tasker.errors import DatabaseUnavailable
from tasker.handlers.claims import Claim, Success
from tasker.json_values import JsonText
from tasker.messaging.service import MessagingService
from tasker.orchestration import results as processing
from tasker.orchestration.finalization import FinalizationConsumer
from tasker.orchestration.results import ResultProcessor
from tasker.settings.execution import Execution
from tasker.template.plan import Plan
from tasker_memory.backend import MemoryBackend
from tests.support.random_plans import DECISION, Spec, build_plan
from tests.unit.execution.bench import FakeClock

ROW = {"step": "s", "task": "t", "name": "s", "template": 1, "ordinal": 0, "token": 1, "attempt": 1}
CALLER = CompletingWorker(str(uuid4()), slots=10)


class Database:
    """Answers every call by what a test gives; keeps the arguments."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.answer, self.calls = answer, list[dict[str, Any]]()
        self.error: Exception | None = None

    async def call(self, function: str, args: Any) -> dict[str, Any]:
        args = json.loads(args) if isinstance(args, str) else dict(args)
        self.calls.append(args)
        return self.answer(args)

    async def execute(self, statement: str, params: Any = ()) -> Sequence[Sequence[Any]]:
        if self.error:
            raise self.error
        return []


def engine_on(database: Database, rules: FleetRules | None = None) -> Engine:
    messaging = MessagingService(MemoryBackend(FakeClock()))
    return Engine(database, messaging, *([rules] if rules else []))  # type: ignore[arg-type]


def result_of(plan: Plan, step: str) -> Result:
    claim = Claim(str(uuid4()), str(uuid4()), step, 1, plan.by_name[step].ordinal, "space", 1, 1, 3, "correlation")
    return Result(claim, plan, 1, Success(JsonText("{}")))


async def test_a_write_that_is_halved_hands_over_no_more_steps_than_there_are_slots() -> None:
    plan = build_plan(Spec("a"))

    def answer(args: dict[str, Any]) -> dict[str, Any]:
        if len(args["items"]) > 1:
            raise DataRefused("one of them cannot be stored")
        return {"claims": [ROW] * 4}

    database = Database(answer)
    advanced = await ResultProcessor(engine_on(database), random.Random(1)).process(
        [result_of(plan, "a"), result_of(plan, "a"), result_of(plan, "a")], CALLER
    )

    offered = [call["slots"] for call in database.calls if len(call["items"]) == 1]
    assert offered == [10, 6, 2]
    assert len(advanced.claims) == 12


async def test_an_expansion_whose_graph_changes_again_and_again_is_brought_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = build_plan(Spec("pick", DECISION), Spec("b", depends_on=("pick",)))
    result = result_of(plan, "pick")
    step, task = result.claim.step_uuid, result.claim.task_uuid

    async def planned(*_: Any, read: bool) -> StepChange:
        return {"s": step, "t": task, "kind": "ok", "k": 1, "r": {}}

    monkeypatch.setattr(processing, "plan_expansion", planned)
    database = Database(lambda args: {"verdicts": {step: "replan"}})
    advanced = await ResultProcessor(engine_on(database), random.Random(1)).process([result], CALLER)

    assert advanced.comes_again(step)
    assert not advanced.refused


async def test_the_rule_for_blocked_tasks_reaches_the_database() -> None:
    database = Database(lambda args: {})
    args: Any = {"worker": CALLER.worker, "items": []}
    await engine_on(database, FleetRules(execution=Execution(on_blocked="wait"))).call("advance", args)

    (sent,) = database.calls
    assert sent["on_blocked"] == "wait"
    assert {**sent, **args} == sent


async def test_finalizations_come_again_when_the_database_is_away() -> None:
    database = Database(lambda args: {})
    engine = engine_on(database)
    await engine.messaging.ensure_orchestration_queues()
    await engine.messaging.send_task_finalization({"task_uuid": str(uuid4())})
    database.error = DatabaseUnavailable("gone")
    with pytest.raises(DatabaseUnavailable):
        await FinalizationConsumer(engine).receive(CALLER, 10)

    assert len(await engine.messaging.receive_task_finalizations(10, 30)) == 1, "at once"
