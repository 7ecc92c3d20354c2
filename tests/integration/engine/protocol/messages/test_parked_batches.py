"""Parked results in batches: one that cannot be stored or ended holds up no other, and none is forgotten (rule 5)."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from tasker.db.channel import DatabaseChannel
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult
from tasker.engine.fleet_rules import FleetRules
from tasker.engine.plans import PlanStore
from tasker.handlers.claims import Failure, Success, Verdict
from tasker.json_values import JsonText
from tasker.messaging.backends import load_backend
from tasker.messaging.messages import POINTED_AT
from tasker.messaging.service import MessagingService
from tasker.orchestration.parked_results import ParkedResultConsumer, ParkingProcessor
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper
from tests.integration.engine.protocol.conftest import AT_ONCE, Orchestra, at_once, result_of
from tests.support.engine_fixture import Item, Lab, ok
from tests.support.random_plans import Spec, StepType, create_steps

FIELD = re.compile(r"(operation|correlation_id|task_uuid|step_uuid|namespace)=(\S+)")
REFUSED = '{"a":"x\\u0000y"}'
"""JSON that PostgreSQL does not store."""


def whom(line: str) -> tuple[str | None, ...]:
    """What a line of the log tells, and of which task and step."""
    found = dict(FIELD.findall(line))
    return found.get("operation", line.split()[0]), found.get("task_uuid"), found.get("step_uuid")


@dataclass(frozen=True)
class Queued(Orchestra):
    """The path `queued`: a worker that parks, and an orchestrator that ends what it finds in its queue."""

    results: ParkedResultConsumer

    async def park(self, *results: object) -> object:
        return await ParkingProcessor(self.engine, random.Random(1)).process(results, self.caller())  # type: ignore[arg-type]

    async def receive(self) -> int:
        return await self.results.receive(self.caller(), 100)

    def due(self, when: str) -> None:
        """Messages that were put off are due then."""
        self.lab.observer.execute(
            "update pgmq.q_orchestration_step_results set vt = clock_timestamp() + %s::interval", when
        )

    def refuse(self, *steps: str, to: str = ">complete$") -> None:
        """From now on the database takes no transitions of these steps whose path matches `to`."""
        for number, step in enumerate(steps):
            self.lab.observer.execute(
                f"alter table tasker.step_moves add constraint refused_{number} "
                f"check (workflow_step_uuid <> '{step}' or tasker.path_text(path) !~ '{to}') not valid"
            )


@pytest.fixture
async def queued(lab: Lab) -> AsyncIterator[Queued]:
    connection = Connection(lab.url)
    messaging = MessagingService(load_backend("pgmq", {"channel": DatabaseChannel(lab.url)}))
    await messaging.open()
    await messaging.ensure_orchestration_queues()
    engine = Engine(connection, messaging, FleetRules(hidden_seconds=36_000))
    processor, plans = ResultProcessor(engine, random.Random(1)), PlanStore(connection)
    sweeper = Sweeper(engine, processor, plans, random.Random(2), AT_ONCE)
    advanced: list[AdvanceResult] = []
    results = ParkedResultConsumer(engine, processor, plans, advanced.append)
    yield Queued(lab, engine, processor, sweeper, results, advanced=advanced)
    await messaging.close()
    await connection.close()


def parked_tasks(queued: Queued, count: int) -> list[Item]:
    """Tasks of one step, which is claimed."""
    queued.lab.submit(queued.lab.chain(1), *({} for _ in range(count)))
    return queued.lab.one.claim()


async def waiting(queued: Queued) -> int:
    return (await queued.engine.messaging.queue_stats("orchestration_step_results")).depth


async def test_a_result_that_the_database_refuses_is_parked_as_a_failure_and_the_others_as_they_are(
    queued: Queued,
) -> None:
    lab = queued.lab
    plan = lab.chain(1)
    claims = parked_tasks(queued, 7)
    results = [result_of(plan, claim) for claim in claims]
    results[2], results[5] = (
        replace(results[2], outcome=Success(JsonText(REFUSED))),
        replace(results[5], outcome=Success(JsonText("{no json"))),
    )

    advanced = await queued.park(*results)
    assert await queued.receive() == 7

    culprits = {claims[2]["step"], claims[5]["step"]}
    assert advanced.refused == dict.fromkeys(culprits, Verdict.NOT_STORABLE)  # type: ignore[attr-defined]
    states = {claim["step"]: lab.task(claim["task"]).state for claim in claims}
    assert {step for step, state in states.items() if state == "error"} == culprits
    assert list(states.values()).count("complete") == 5
    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", claims[2]["task"])
    assert (error["error_type"], "cannot be stored" in error["message"]) == ("not_storable", True)
    lab.check()


async def test_results_that_are_parked_together_are_pointed_at_with_few_messages_and_ended_in_writes_of_so_many_steps(
    queued: Queued,
) -> None:
    lab = queued.lab
    claims = parked_tasks(queued, POINTED_AT + 3)
    await queued.park(*(result_of(lab.chain(1), claim) for claim in claims))
    assert await waiting(queued) == 2

    assert await queued.results.receive(queued.caller(), POINTED_AT) == len(claims)

    finished = AdvanceResult.merged(queued.advanced).finished
    assert set(finished.values()) == {"complete"}
    assert len(finished) == len(claims)
    assert await waiting(queued) == 0
    writes = lab.observer.rows(
        "select count(distinct updated_at) as writes, max(n) as most from (select updated_at,"
        " count(*) as n from tasker.tasks group by updated_at) t"
    )
    assert [(row.writes, row.most) for row in writes] == [(2, POINTED_AT)]
    lab.check()


async def test_the_shortest_delay_of_parked_retries_is_answered_also_after_halving(queued: Queued) -> None:
    plan = queued.lab.plan(Spec("soon"), Spec("bad"))
    _, claims = queued.lab.running(plan)
    failure = Failure("try later", "X", retryable=True)

    advanced = await queued.park(
        result_of(plan, claims["soon"], failure=failure),
        replace(result_of(plan, claims["bad"]), outcome=Success(JsonText(REFUSED))),
    )

    assert advanced.retry_in_ms is not None  # type: ignore[attr-defined]


async def test_who_ends_a_parked_retry_knows_when_it_is_due(queued: Queued) -> None:
    """Its process promotes retries, too: it need not look for them."""
    plan = queued.lab.chain(1)
    _, claims = queued.lab.running(plan)
    await queued.park(result_of(plan, claims["s0"], failure=Failure("try later", "X", True, retry_after=2)))

    await queued.receive()

    assert [each.retry_in_ms for each in queued.advanced] == [2000]


async def test_a_parked_result_that_cannot_be_ended_fails_alone(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    lab = queued.lab
    claims = parked_tasks(queued, 5)
    await queued.park(*(result_of(lab.chain(1), claim) for claim in claims))
    queued.refuse(claims[3]["step"])

    assert await queued.receive() == 5

    states = [lab.task(claim["task"]).state for claim in claims]
    assert states == ["complete"] * 3 + ["error"] + ["complete"]
    assert await waiting(queued) == 0
    assert [whom(line) for line in caplog.messages] == [("parked_result_refused", claims[3]["task"], claims[3]["step"])]


async def test_an_expansion_that_cannot_be_written_fails_alone(queued: Queued) -> None:
    lab = queued.lab
    plan = lab.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    lab.submit(plan, {}, {})
    bad, good = lab.one.claim()
    await queued.park(*(result_of(plan, claim, create_steps("a")) for claim in (bad, good)))
    queued.refuse(bad["step"])

    assert await queued.receive() == 2

    assert lab.states(bad["task"]) == {"choice": "error"}
    assert lab.states(good["task"]) == {"choice": "complete", "a": "enqueued"}


async def test_a_parked_result_that_cannot_even_fail_is_said_and_the_others_are_ended(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    lab = queued.lab
    claims = parked_tasks(queued, 3)
    await queued.park(*(result_of(lab.chain(1), claim) for claim in claims))
    queued.refuse(claims[1]["step"], to=">")

    assert await queued.receive() == 3

    assert [lab.task(claim["task"]).state for claim in claims] == ["complete", "steps_in_process", "complete"]
    assert whom(caplog.messages[-1]) == ("parked_result_stuck", claims[1]["task"], claims[1]["step"])


async def test_a_sweep_goes_on_after_rows_that_the_database_refuses(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    """A lost worker, a parked step and, after both, another lost worker."""
    lab = queued.lab
    parked, *orphans = sorted(parked_tasks(queued, 4), key=lambda claim: str(claim["task"]))
    lab.one.core("park", {"worker": lab.one.worker, "items": [ok(parked)]})
    queued.refuse(orphans[0]["step"], parked["step"], to=">")

    repairs = await queued.sweep()

    assert repairs == {"lost_worker": 2}
    assert {lab.states(orphan["task"])["s0"] for orphan in orphans[1:]} == {"waiting_for_retry"}
    said = [whom(line) for line in caplog.messages]
    assert ("sweep_refused", orphans[0]["task"], orphans[0]["step"]) in said
    (told,) = [dict(FIELD.findall(line)) for line in caplog.messages if line.startswith("sweep_refused")]
    assert (told["correlation_id"], told["namespace"]) == (orphans[0]["task"], lab.namespace), "it is its own"
    assert ("parked_result_stuck", parked["task"], parked["step"]) in said


async def test_a_sweep_settles_the_others_when_the_database_refuses_one_task(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    lab = queued.lab
    tasks = lab.submit(lab.chain(1), {}, {}, {})
    lab.one.run_all()
    lab.observer.execute("update tasker.tasks set state = 'evaluating_results', complete = false, completed_at = null")
    lab.observer.execute(
        "alter table tasker.task_moves add constraint refused "
        f"check (task_uuid <> '{tasks[1]}' or tasker.path_text(path) !~ '>complete$') not valid"
    )

    assert await queued.sweep() == {"not_finished": 2}

    assert [lab.task(task).complete for task in tasks] == [True, False, True]
    whose = f"correlation_id={tasks[1]} task_uuid={tasks[1]} namespace={lab.namespace}"
    assert f"sweep_refused {whose} error=" in caplog.text
    lab.observer.execute("alter table tasker.task_moves drop constraint refused")
    assert await queued.sweep() == {"not_finished": 1}


async def test_a_template_of_a_newer_release_holds_up_neither_the_queue_nor_a_sweep(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    lab = queued.lab
    (old,) = lab.submit(lab.chain(1), {})
    (newer,) = lab.submit(lab.chain(1, name="newer"), {})
    lost = lab.submit(lab.chain(1, name="newer"), {})[0]
    claims = {claim["task"]: claim for claim in lab.one.claim()}
    await queued.park(result_of(lab.chain(1), claims[old]), result_of(lab.chain(1, name="newer"), claims[newer]))
    lab.observer.execute(
        """update tasker.templates set plan = plan || '{"of": "tomorrow"}'
        where template_id = (select template_id from tasker.tasks where task_uuid = %s)""",
        newer,
    )

    assert await queued.receive() == 2
    assert (lab.task(old).state, lab.states(newer)["s0"]) == ("complete", "enqueued_for_orchestration")
    assert await waiting(queued) == 1, "somebody else may be able to"

    assert not await queued.sweep()
    assert lab.states(lost)["s0"] == "in_progress"
    assert [line.split()[0] for line in caplog.messages] == ["template_unreadable"], "said once"


async def test_of_messages_to_many_results_few_are_taken_at_a_time(queued: Queued) -> None:
    """The rest is for other orchestrators. To how many results a message points is known of those before."""
    lab = queued.lab
    found = []
    for counts in ([POINTED_AT] * 2, [POINTED_AT, *(1,) * 4]):
        for count in counts:
            await queued.park(*(result_of(lab.chain(1), claim) for claim in parked_tasks(queued, count)))
        while count := await queued.results.receive(queued.caller(), POINTED_AT):
            found.append(count)

    assert found == [2 * POINTED_AT, POINTED_AT, 1, 3]
    assert await waiting(queued) == 0


def patient_sweeper(queued: Queued) -> Sweeper:
    """A result may have been parked for a minute. An orchestrator lives."""
    lives = {"action": "start", "worker": queued.lab.one.worker, "kind": "orchestrator", "lease_ms": 60_000}
    queued.lab.one.core("worker", {**lives, "host": "here", "pid": 1, "namespaces": [], "concurrency": 0})
    plans, patience = (
        PlanStore(queued.engine.connection),
        at_once(park_grace_ms=60_000),
    )
    return Sweeper(queued.engine, queued.processor, plans, random.Random(2), patience)


async def test_a_sweep_leaves_results_to_an_orchestrator_that_has_much_to_do(queued: Queued) -> None:
    """Both would make the same decisions at the same time. It does not leave them for ever, nor without a message."""
    lab = queued.lab
    patient = patient_sweeper(queued)
    claims = parked_tasks(queued, 3)
    for claim, age in zip(claims, ("2 minutes", "2 hours", "2 minutes"), strict=True):
        await queued.park(result_of(lab.chain(1), claim))
        old = "update tasker.workflow_steps set hinted_at = hinted_at - %s::interval where workflow_step_uuid = %s"
        lab.observer.execute(old, age, claim["step"])

    assert +await patient.sweep(queued.caller()) == {"result_message_lost": 1}
    assert [lab.task(claim["task"]).complete for claim in claims] == [False, True, False]
    assert not +await patient.sweep(queued.caller())

    lab.observer.execute("update tasker.workers set lease_until = '-infinity'")
    assert +await patient.sweep(queued.caller()) == {"result_message_lost": 2}


async def test_a_sweep_ends_results_at_once_whose_messages_are_gone(queued: Queued) -> None:
    """An operator has purged the queue."""
    lab = queued.lab
    patient = patient_sweeper(queued)
    (claim,) = parked_tasks(queued, 1)
    await queued.park(result_of(lab.chain(1), claim))
    lab.observer.execute("update tasker.workflow_steps set hinted_at = hinted_at - interval '2 minutes'")
    lab.observer.value("select pgmq.purge_queue('orchestration_step_results')")

    assert +await patient.sweep(queued.caller()) == {"result_message_lost": 1}
