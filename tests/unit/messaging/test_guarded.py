"""The breaker around a backend: what it refuses, what passes it by, and how it closes again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tasker.errors import CircuitBreakerOpen, InvalidQueueName, MessagingError
from tasker.messaging.backends import load_backend
from tasker.messaging.guarded import ForwardingBackend, GuardedBackend
from tasker.messaging.service import MessagingService
from tasker.resilience.breaker import BreakerState, CircuitBreaker, GuardedCircuit
from tasker.template.plan import BreakerPolicy

POLICY = BreakerPolicy(failure_threshold=2, timeout_seconds=30, success_threshold=1)


class Time:
    """A clock that stands."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> None:
        raise AssertionError("a breaker needs no calendar")


class Sick(ForwardingBackend):
    """A working backend that fails with `error` as long as there is one. `calls` counts what reached it."""

    error: BaseException | None = None
    calls = 0

    async def create_queue(self, queue: str) -> None:
        self.calls += 1
        if self.error:
            raise self.error
        await self._backend.create_queue(queue)

    async def send_messages(self, queue: str, payloads: object) -> list[int]:
        self.calls += 1
        if self.error:
            raise self.error
        return await self._backend.send_messages(queue, payloads)  # type: ignore[arg-type]

    async def receive_messages(self, queue: str, limit: int, visibility_timeout: float) -> list[object]:  # type: ignore[override]
        self.calls += 1
        if self.error:
            raise self.error
        return list(await self._backend.receive_messages(queue, limit, visibility_timeout))


class Rig:
    def __init__(self) -> None:
        self.time, self.sick = Time(), Sick(load_backend("memory", {}))
        self.guarded = GuardedBackend(self.sick, GuardedCircuit(CircuitBreaker("messaging", POLICY), self.time))  # type: ignore[arg-type]

    async def send(self) -> list[int]:
        return await self.guarded.send_messages("q", [b"{}"])

    async def fail(self, times: int = 2, error: BaseException | None = None) -> None:
        self.sick.error = error or MessagingError("no answer")
        for _ in range(times):
            with pytest.raises(type(self.sick.error)):
                await self.send()

    @property
    def state(self) -> BreakerState:
        return self.guarded.breaker.state


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    await rig.guarded.open()
    await rig.guarded.create_queue("q")
    rig.sick.calls = 0
    return rig


async def test_after_failures_in_a_row_calls_fail_at_once_and_say_when_to_come_back(rig: Rig) -> None:
    await rig.fail()
    rig.time.seconds = 10

    with pytest.raises(CircuitBreakerOpen, match="the memory backend keeps failing") as caught:
        await rig.send()
    with pytest.raises(CircuitBreakerOpen):
        await rig.guarded.receive_messages("q", 1, 30)

    assert caught.value.retry_after == 20
    assert rig.sick.calls == 2, "the open breaker lets nothing reach the provider"


async def test_sending_and_receiving_count_together(rig: Rig) -> None:
    await rig.fail(1)
    with pytest.raises(MessagingError):
        await rig.guarded.receive_messages("q", 1, 30)

    assert rig.state is BreakerState.OPEN


async def test_after_the_timeout_a_trial_closes_it(rig: Rig) -> None:
    await rig.fail()
    rig.sick.error = None
    rig.time.seconds = 30

    assert len(await rig.send()) == 1
    assert rig.state is BreakerState.CLOSED


ACROSS: dict[str, Callable[[GuardedBackend, int], Awaitable[object]]] = {
    "ack": lambda backend, message: backend.ack_message("q", message),
    "nack": lambda backend, message: backend.nack_message("q", message),
    "extend": lambda backend, message: backend.extend_visibility("q", message, 30),
    "create_queue": lambda backend, message: backend.create_queue("another"),
    "stats": lambda backend, message: backend.queue_stats("q"),
}


@pytest.mark.parametrize("name", ACROSS)
async def test_what_is_safe_or_shows_the_recovery_passes_an_open_breaker(rig: Rig, name: str) -> None:
    await rig.send()
    (message,) = await rig.guarded.receive_messages("q", 1, 30)
    rig.guarded.breaker.force_open()

    assert await ACROSS[name](rig.guarded, message.message_id) is not False
    assert rig.state is BreakerState.OPEN


async def test_making_a_queue_again_before_each_call_counts_and_is_refused_as_the_call_would_be(rig: Rig) -> None:
    service = MessagingService(rig.guarded)
    await service.ensure_namespace("pay")
    rig.sick.error = MessagingError("no answer")
    for _ in range(2):
        with pytest.raises(MessagingError):
            await service.receive_step_messages("pay", 1, 30)
    calls = rig.sick.calls

    with pytest.raises(CircuitBreakerOpen):
        await service.receive_step_messages("pay", 1, 30)
    assert rig.sick.calls == calls


async def test_a_health_check_that_succeeds_lets_a_trial_pass_at_once(rig: Rig) -> None:
    await rig.fail()
    rig.sick.error = None

    assert await rig.guarded.health_check()

    assert len(await rig.send()) == 1
    assert rig.guarded.breaker.is_healthy()


async def test_the_caller_s_own_mistakes_do_not_open_it(rig: Rig) -> None:
    await rig.fail(10, InvalidQueueName("a bad name"))

    assert rig.state is BreakerState.CLOSED


async def test_a_cancelled_trial_makes_room_for_another(rig: Rig) -> None:
    await rig.fail()
    rig.time.seconds = 30
    await rig.fail(1, asyncio.CancelledError())
    rig.sick.error = None

    assert await rig.send()
