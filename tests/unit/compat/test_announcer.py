"""What a worker does reaches the event bridge: in order, off the worker's loop, and never in its way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tasker.errors import PermanentError
from tasker.execution.attempt.attempt import AttemptCancelled
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.resilience.breakers import Breakers
from tasker.step_handler import checkpoint_yield, step_handler
from tasker_core._runtime import announcer
from tasker_core._runtime.announcer import ObservedRunner, StepAnnouncer
from tasker_core.event_bridge import AnnouncedStep, EventBridge, EventNames
from tasker_core.step_execution_subscriber import StepExecutionSubscriber
from tests.unit.execution.bench import Bench, FakeClock

EVENTS = (
    EventNames.STEP_EXECUTION_RECEIVED,
    EventNames.STEP_CHECKPOINT_YIELD,
    EventNames.HANDLER_ERROR,
    EventNames.STEP_COMPLETION_SENT,
)


@pytest.fixture
def bridge() -> Iterator[EventBridge]:
    bridge = EventBridge()
    bridge.start()
    yield bridge
    bridge.stop()


@pytest.fixture
def watching(bridge: EventBridge) -> Iterator[StepAnnouncer]:
    watching = StepAnnouncer(bridge)
    watching.start("worker-1")
    yield watching
    watching.stop()


@pytest.fixture
def bench(watching: StepAnnouncer) -> Bench:
    clock, registry = FakeClock(), HandlerRegistry()
    breakers = Breakers(clock)
    runner = ObservedRunner(observer=watching, registry=registry, clock=clock, breakers=breakers, threads=1)
    return Bench(runner, registry, clock, [], breakers)


def listen(bridge: EventBridge) -> list[tuple[str, tuple[Any, ...]]]:
    heard: list[tuple[str, tuple[Any, ...]]] = []
    for name in EVENTS:
        bridge.subscribe(name, lambda *arguments, name=name: heard.append((name, arguments)))
    return heard


@step_handler("works")
async def works() -> dict[str, int]:
    return {"n": 1}


@step_handler("fails")
async def fails() -> None:
    raise PermanentError("no", error_code="NO")


@step_handler("yields")
async def yields(context: Any) -> dict[str, Any]:
    if not context.has_checkpoint():
        checkpoint_yield(10, 5, {"sum": 3})
    return {"from": context.checkpoint_cursor}


async def test_a_step_is_announced_before_and_after(bench: Bench, bridge: EventBridge, watching: StepAnnouncer) -> None:
    heard = listen(bridge)
    await bench.run(works)
    watching.stop()

    assert [name for name, _ in heard] == [EventNames.STEP_EXECUTION_RECEIVED, EventNames.STEP_COMPLETION_SENT]
    (step,), (result,) = heard[0][1], heard[1][1]
    assert step.task_sequence_step["workflow_step"]["name"] == "charge"
    assert (str(result.step_uuid), result.success, result.result) == (step.step_uuid, True, {"n": 1})
    assert result.worker_id == "worker-1"


async def test_a_failure_is_announced_with_its_error(
    bench: Bench, bridge: EventBridge, watching: StepAnnouncer
) -> None:
    heard: dict[str, Any] = {}
    bridge.subscribe(EventNames.HANDLER_ERROR, lambda step, error: heard.update(error=error))
    bridge.subscribe(EventNames.STEP_COMPLETION_SENT, lambda result: heard.update(result=result))
    await bench.run(fails)
    watching.stop()

    error, result = heard["error"], heard["result"]
    assert (str(error), error.error_code, error.retryable) == ("no", "NO", False)
    assert (result.success, result.error.message, result.error.retryable) == (False, "no", False)


async def test_a_saved_checkpoint_is_announced(bench: Bench, bridge: EventBridge, watching: StepAnnouncer) -> None:
    heard = listen(bridge)
    await bench.run(yields)
    watching.stop()

    (saved,) = dict(heard)[EventNames.STEP_CHECKPOINT_YIELD]
    position = {"cursor": 10, "items_processed": 5, "accumulated_results": {"sum": 3}}
    assert saved == {"step_uuid": "01900000-0000-7000-8000-000000000001", **position}
    assert [name for name, _ in heard].count(EventNames.STEP_EXECUTION_RECEIVED) == 1, (
        "one attempt, however often it runs"
    )


async def test_what_the_worker_did_is_counted_without_a_listener(bench: Bench, watching: StepAnnouncer) -> None:
    for handler in (works, fails, works):
        await bench.run(handler)
    attempt = bench.attempt(works)
    attempt.cancel.set(AttemptCancelled)
    await bench.end(attempt)

    counted = (watching.processed, watching.succeeded, watching.failed, watching.running)
    assert counted == (3, 2, 1, 0)


async def test_a_listener_that_blocks_does_not_hold_up_the_worker(
    bench: Bench, bridge: EventBridge, watching: StepAnnouncer
) -> None:
    go = threading.Event()
    heard: list[Any] = []
    bridge.subscribe(EventNames.STEP_COMPLETION_SENT, lambda result: (go.wait(30), heard.append(result)))
    for _ in range(3):
        await bench.run(works)
    assert heard == []
    go.set()
    watching.stop()

    assert len(heard) == 3


async def test_events_beyond_the_limit_are_dropped_and_counted(
    bench: Bench, bridge: EventBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "WAITING_EVENTS", 2)
    full = StepAnnouncer(bridge)  # not started: nobody takes them
    bridge.subscribe(EventNames.STEP_EXECUTION_RECEIVED, lambda step: None)
    for _ in range(5):
        full.received(bench.attempt(works))

    assert (full.dropped, full.running) == (3, 5)


async def test_a_subscriber_in_the_worker_s_process_does_not_run_the_step_again(
    bench: Bench, bridge: EventBridge, watching: StepAnnouncer
) -> None:
    runs: list[int] = []

    @step_handler("under_test")
    async def counts() -> None:
        runs.append(1)

    subscriber = StepExecutionSubscriber(bridge, bench.registry, "worker-1")
    subscriber.start()
    heard = listen(bridge)
    await bench.run(counts)
    watching.stop()

    assert runs == [1]
    assert isinstance(heard[0][1][0], AnnouncedStep)
