"""A running process takes over another mode, other pauses, other breakers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from tasker.errors import MessagingError
from tasker.messaging.listening_modes import DeploymentMode, EventSettings
from tasker.process.listener import NotificationListener, Source
from tasker.resilience.breaker import BreakerState, GuardedCircuit
from tasker.resilience.breakers import BreakerPolicies
from tasker.template.plan import BreakerPolicy
from tests.integration.process.programs import (
    NEVER_MS,
    QUICK,
    events_of,
    eventually,
    listening,
    runs,
    runtime_of,
    settings,
    submitting,
    working,
)
from tests.support.servers.brokers import engine_settings, remove_queues

POLLING, EVENTS, HYBRID = DeploymentMode.POLLING_ONLY, DeploymentMode.EVENT_DRIVEN_ONLY, DeploymentMode.HYBRID
PATIENT = replace(QUICK, poll_ms=NEVER_MS, lost_poll_ms=NEVER_MS)


@pytest.mark.parametrize("backend", ["pgmq", "rabbitmq"])
async def test_a_worker_changes_its_mode_while_it_works(database_url: str, backend: str) -> None:
    broker = engine_settings(backend)
    options = {"backend": backend, "backend_settings": broker}
    async with (
        working(database_url, settings(POLLING), **options) as app,
        submitting(database_url, **options) as program,
    ):
        events = events_of(app)
        await runs(program, 3)
        assert not listening(database_url)

        events.change(replace(PATIENT, deployment_mode=EVENTS))
        assert events.mode is EVENTS
        await eventually(lambda: all(each.state.is_listening for each in events.listeners.values()), "it hears")
        assert events.longest_pause() is None
        assert len(listening(database_url)) == 1
        await runs(program, 3)

        events.change(replace(QUICK, deployment_mode=POLLING))
        await eventually(lambda: not listening(database_url), "it listens no more")
        assert (events.listeners, events.longest_pause()) == ({}, 0.2)
        await runs(program, 3)
        assert runtime_of(app).supervisor.crashes == {}
        await remove_queues(app.messaging, broker)


async def test_shorter_pauses_count_at_once(database_url: str) -> None:
    """The worker rests until something is announced, and nothing is: only the new pause ends it."""
    async with working(database_url, settings(HYBRID, PATIENT)) as app, submitting(database_url) as program:
        runtime_of(app)._heard = lambda notification: None  # type: ignore[method-assign]
        events = events_of(app)
        await eventually(lambda: bool(listening(database_url)), "it listens")
        events.change(replace(QUICK, deployment_mode=POLLING))
        await runs(program, 2)


async def test_a_health_check_interval_that_became_shorter_does_not_wait_for_the_longer_one(database_url: str) -> None:
    slow = replace(QUICK, health_check_interval_seconds=3600)
    async with working(database_url, settings(EVENTS, slow)) as app:
        events = events_of(app)
        checked: list[bool] = []
        judge = events.health
        events.health = lambda: checked.append(True) or judge()  # type: ignore[method-assign, func-returns-value]
        await eventually(lambda: events.is_running, "it watches itself")
        events.change(replace(QUICK, deployment_mode=EVENTS, health_check_interval_seconds=0.01))
        await eventually(lambda: len(checked) > 3, "it looks often")


def fail(breaker: GuardedCircuit, error: str) -> None:
    permit = breaker.should_allow()
    assert permit is not None
    breaker.record_failure(permit, error)


async def test_breakers_take_over_thresholds_and_keep_what_they_counted(database_url: str) -> None:
    async with working(database_url, settings(EVENTS)) as app:
        breaker = runtime_of(app).breakers.task_readiness
        fail(breaker, "first")
        fail(breaker, "second")
        assert breaker.state is BreakerState.CLOSED
        policy = BreakerPolicy(failure_threshold=3, timeout_seconds=3600, success_threshold=1)
        runtime_of(app).breakers.change(BreakerPolicies(task_readiness=policy, slow_completion_ms=7))
        fail(breaker, "third")
        assert breaker.state is BreakerState.OPEN
        assert runtime_of(app).breakers.completion.slow_seconds == 0.007
        runtime_of(app).breakers.task_readiness.force_closed()


class SlowSource:
    """It takes its time to close."""

    def __init__(self, on_close: Exception | None = None) -> None:
        self.opened, self.may_close = 0, asyncio.Event()
        self._on_close = on_close

    async def news(self, settings: EventSettings) -> AsyncGenerator[None, None]:
        self.opened += 1
        try:
            yield None
            await asyncio.Event().wait()
        finally:
            await self.may_close.wait()
            if self._on_close is not None:
                raise self._on_close


@pytest.mark.parametrize("on_close", [None, MessagingError("the client was told to stop")])
async def test_what_changes_twice_while_a_source_is_closing_counts_as_it_was_said_last(
    on_close: Exception | None,
) -> None:
    source = SlowSource(on_close)
    listener = NotificationListener(
        Source("slow", source.news, lambda item: None),
        QUICK,
        random,
        wanted=True,
        changed=lambda: None,
        pause=lambda: None,
    )
    running = asyncio.create_task(listener.run())
    await eventually(lambda: listener.state.is_listening, "it hears")
    listener.change(QUICK, wanted=True)
    await asyncio.sleep(0)
    listener.change(replace(QUICK, poll_ms=7), wanted=False)
    source.may_close.set()
    await eventually(lambda: not listener.state.is_listening, "it rests")
    assert source.opened == 1
    listener.change(QUICK, wanted=True)
    await eventually(lambda: listener.state.is_listening, "it hears again")
    assert source.opened == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
