"""Rule 22: the engine keeps nothing in a session, so a pooler may give every transaction another one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper
from tests.integration.engine.protocol.conftest import AT_ONCE, Orchestra, result_of
from tests.support.engine_fixture import Lab, Session, change, fail, new_step, ok, operator, retry
from tests.support.random_plans import Spec, StepType, create_batches, create_steps


class PooledSession(Session):
    """Every statement finds a session that was wiped, and no schema to search in."""

    def rows(self, query: str, *params: Any) -> list[Any]:
        self._wipe()
        return super().rows(query, *params)

    def execute(self, statement: str, *params: Any) -> None:
        self._wipe()
        super().execute(statement, *params)

    def _wipe(self) -> None:
        self.connection.prepare_threshold = None
        self.connection.execute("discard all")
        self.connection.execute("set search_path = ''")


class PooledConnection(Connection):
    """The same for the asynchronous connection of the hot path."""

    async def execute(self, statement: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> list[Any]:
        await super().execute("discard all")
        return await super().execute(statement, params)


@pytest.fixture
def lab(lone_lab: Lab) -> Lab:
    """Sessions that no other test gets: the driver does not know that what it has prepared in them is gone."""
    return lone_lab


@pytest.fixture
def pooled(lab: Lab) -> Lab:
    for name in ("one", "two"):
        session = getattr(lab, name)
        setattr(lab, name, PooledSession(lab, session.connection))
    return lab


def test_a_task_runs_through_wiped_sessions(pooled: Lab) -> None:
    plan = pooled.plan(
        Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a",)), Spec("d", depends_on=("b", "c"))
    )
    task = pooled.submit_one(plan)

    assert pooled.one.run_all() == 4
    assert pooled.task(task).state == "complete"


def test_everything_that_may_happen_to_a_step_happens_in_wiped_sessions(pooled: Lab) -> None:
    pooled.one.start_worker()
    task, claims = pooled.running(pooled.plan(Spec("a"), Spec("b"), Spec("c"), Spec("d"), Spec("e")))
    pooled.one.advance(
        ok(claims["a"]), retry(claims["b"], delay_ms=0), fail(claims["c"]), change("release", claims["d"])
    )
    pooled.two.call("due", pooled.two.args(slots=1))
    pooled.one.advance(operator("reset", pooled.steps(task)["c"]))
    checkpoint = {"step": claims["e"]["step"], "token": claims["e"]["token"], "cursor": 3}
    assert pooled.one.core("checkpoint", checkpoint)["checkpoint"]["cursor"] == 3
    pooled.one.core("park", {"worker": pooled.one.worker, "items": [ok(claims["e"])]})
    pooled.two.advance(change("ok", claims["e"]))
    pooled.one.core("worker", {"action": "beat", "worker": pooled.one.worker, "lease_ms": 100, "held": []})

    pooled.two.finish(*pooled.running_claims(task).values())

    assert pooled.task(task).state == "complete"


def test_held_steps_are_released_and_a_task_cancelled_in_wiped_sessions(pooled: Lab) -> None:
    pooled.window = 1
    first, second, third = pooled.submit(pooled.chain(1), {}, {}, {})
    pooled.one.call("cancel", {"task": third})
    pooled.one.finish(*pooled.one.claim())
    pooled.one.call("backlog", pooled.one.args())
    pooled.one.run_all()

    assert [pooled.task(task).state for task in (first, second, third)] == ["complete", "complete", "cancelled"]


def test_an_expansion_is_written_in_a_wiped_session(pooled: Lab) -> None:
    plan = pooled.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    task, claims = pooled.running(plan)
    pooled.one.advance(ok(claims["choice"], gv=0, x=[new_step(plan, "a", "choice")]))
    pooled.one.run_all()

    assert pooled.task(task).state == "complete"


async def test_the_processor_and_the_sweeps_work_behind_a_pooler(pooled: Lab) -> None:
    connection = PooledConnection(pooled.url, prepare=False)
    engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
    processor = ResultProcessor(engine, random.Random(1))
    sweeper = Sweeper(engine, processor, PlanStore(connection), random.Random(1), AT_ONCE)
    orchestra = Orchestra(pooled, engine, processor, sweeper)
    plan = pooled.plan(
        Spec("choice", StepType.DECISION),
        Spec("cut", StepType.BATCHABLE, ("choice",)),
        Spec("work", StepType.BATCH_WORKER, ("cut",)),
        Spec("sum", StepType.DEFERRED, ("work",)),
    )
    task, claims = pooled.running(plan)
    await orchestra.process(result_of(plan, claims["choice"], create_steps("cut")))
    (cut,) = pooled.one.claim()
    await orchestra.process(result_of(plan, cut, create_batches("work", 3)))
    pooled.lose_hints()
    assert await orchestra.sweep() == {"hint_lost": 3}
    while claims_now := pooled.one.claim():
        await orchestra.process(*(result_of(plan, claim) for claim in claims_now))
    await connection.close()

    assert pooled.task(task).state == "complete"


def test_a_set_time_ends_with_its_transaction(lab: Lab) -> None:
    """`tasker.now` may be set for one transaction, as behind a pooler it must be."""
    with lab.transaction(lab.one):
        lab.one.execute("set local tasker.now = '2001-02-03T04:05:06Z'")
        task = lab.submit_one(lab.chain(1))
    assert lab.task(task).created_at.isoformat().startswith("2001-02-03T04:05:06")

    assert lab.task(lab.submit_one(lab.chain(1))).created_at.year > 2001
