"""Rule 9: with a backend outside the database, hints are sent after the commit; sweeps send what was lost."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest

from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.errors import DatabaseError, MessagingError
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper
from tests.integration.engine.protocol.conftest import AT_ONCE, Orchestra, result_of
from tests.support.engine_fixture import Lab


class Flaky(MessagingService):
    """A service whose provider can be out of reach."""

    down = False

    async def send_hints(self, entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        if self.down:
            raise MessagingError("the broker is gone")
        return await super().send_hints(entries)


@pytest.fixture
async def outside(lab: Lab) -> AsyncIterator[Orchestra]:
    connection = Connection(lab.url)
    messaging = Flaky(load_backend("memory", {}))
    await messaging.open()
    engine = Engine(connection, messaging)
    processor = ResultProcessor(engine, random.Random(1))
    yield Orchestra(
        lab, engine, processor, Sweeper(engine, processor, PlanStore(connection), random.Random(1), AT_ONCE)
    )
    await connection.close()
    await messaging.close()


async def submit(outside: Orchestra, count: int = 1) -> Any:
    """Tasks of two steps each, and their plan."""
    lab = outside.lab
    plan = lab.chain(2)
    registered = await PlanStore(outside.engine.connection).register(plan)
    tasks = [{"id": new_task_uuid(), "identity": new_task_uuid()} for _ in range(count)]
    await outside.engine.call("submit", {"template": registered.template_id, "window": lab.window, "tasks": tasks})
    return plan


async def claim(outside: Orchestra, slots: int = 10) -> list[Any]:
    return [row._asdict() for row in (await outside.engine.claim(outside.lab.one.args(slots=slots))).claims]


async def test_a_task_runs_on_hints_outside_the_database(outside: Orchestra) -> None:
    plan = await submit(outside, 3)
    assert outside.lab.queue_depth() == 0

    done = 0
    while claims := await claim(outside):
        await outside.process(*(result_of(plan, step) for step in claims))
        done += len(claims)

    assert done == 6
    assert outside.lab.observer.value("select count(*) from tasker.tasks where state = 'complete'") == 3


async def test_hints_that_could_not_be_sent_after_the_commit_are_sent_by_a_sweep(outside: Orchestra) -> None:
    plan = await submit(outside)
    (first,) = await claim(outside)
    outside.lab.one.start_worker()
    outside.engine.messaging.down = True  # type: ignore[attr-defined]
    advanced = await outside.process(result_of(plan, first))
    assert not advanced.refused, "the result is committed, whatever the broker says"
    outside.engine.messaging.down = False  # type: ignore[attr-defined]
    assert not await claim(outside)

    assert await outside.sweep() == {"hint_lost": 1}
    assert not await outside.sweep(), "as many messages as enqueued steps: nothing is short"

    (second,) = await claim(outside)
    assert second["name"] == "s1"


async def test_what_a_sweep_repairs_while_the_broker_is_away_is_counted(
    outside: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost worker and a lost hint: the first is repaired, the second when the broker is back."""

    async def away(queue: str) -> Any:
        raise MessagingError("the broker is gone")

    plan = await submit(outside, 2)
    orphan, other = await claim(outside)
    outside.engine.messaging.down = True  # type: ignore[attr-defined]
    outside.lab.two.start_worker()
    await outside.process(result_of(plan, other))
    with monkeypatch.context() as patch:
        patch.setattr(outside.engine.messaging, "queue_stats", away)
        assert await outside.sweep() == {"lost_worker": 1}
    outside.engine.messaging.down = False  # type: ignore[attr-defined]

    assert await outside.sweep() == {"hint_lost": 1}
    assert outside.lab.states(orphan["task"])["s0"] == "waiting_for_retry"
    assert outside.lab.observer.value("select repaired from tasker.repairs where kind = 'lost_worker'") == 1


async def test_a_claim_that_the_database_refuses_gives_its_messages_back(outside: Orchestra) -> None:
    await submit(outside)
    args = outside.lab.one.args(slots=5)

    with pytest.raises(DatabaseError):
        await outside.engine.claim({**args, "timeout_ms": "no number"})

    assert [step["name"] for step in await claim(outside)] == ["s0"]


async def test_a_message_that_comes_twice_claims_once(outside: Orchestra) -> None:
    await submit(outside)
    step = next(
        iter(
            outside.lab.observer.rows(
                "select workflow_step_uuid as step, task_uuid as task from tasker.workflow_steps where unmet = 0"
            )
        )
    )
    hint = {"namespace": outside.lab.namespace, "step": str(step.step), "task": str(step.task)}
    await outside.engine.messaging.send_hints([hint])

    answer = await outside.engine.claim(outside.lab.one.args(slots=5))

    assert (len(answer.claims), answer.popped) == (1, 2)
    assert not await claim(outside)


async def test_what_is_no_hint_is_set_aside_and_does_not_come_back(outside: Orchestra) -> None:
    await submit(outside)
    service = outside.engine.messaging
    await service.backend.send_message(service.names.step_queue(outside.lab.namespace), b"\xff\x00 no json")

    assert len(await claim(outside)) == 1
    assert outside.lab.observer.value("select count(*) from tasker.poison_messages") == 1
    assert not await claim(outside)
