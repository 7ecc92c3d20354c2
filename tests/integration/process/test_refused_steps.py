"""A step that one worker refuses and another serves: its message is sent again, and who serves it is woken then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.orchestration.sweep import SweepSettings
from tasker.process.listening_sources import NOTIFICATIONS
from tasker.process.runtime import Runtime
from tasker.settings.execution import Sweep
from tests.integration.process.programs import (
    NEVER_MS,
    QUICK,
    eventually,
    plan,
    runtime_of,
    settings,
    submitting,
    working,
)
from tests.integration.process.test_modes import hears, rests
from tests.support.servers.brokers import engine_settings, on, remove_queues

ANNOUNCED = settings(DeploymentMode.EVENT_DRIVEN_ONLY, replace(QUICK, poll_ms=NEVER_MS, lost_poll_ms=NEVER_MS))
BLIND = SweepSettings(Sweep(hint_grace_ms=NEVER_MS))
"""Sweeps that do not look for steps whose message was lost, which would wake everybody in the end."""


def wake_by_name_only(runtime: Runtime) -> None:
    """Keep new work from this worker, so that the other one is always the first to see a message."""
    for name, listener in runtime.events.listeners.items():
        on_item = listener.source.on_item

        def by_name(item: Any, on_item: Callable[[Any], None] = on_item) -> None:
            if not item[1].startswith("@"):
                on_item(item)

        listener.source = replace(listener.source, on_item=by_name if name == NOTIFICATIONS else lambda _: None)


@pytest.mark.parametrize("backend", [on("pgmq"), on("rabbitmq"), on("redis"), on("nats")])
async def test_a_worker_that_serves_a_refused_step_is_woken_without_any_poll(database_url: str, backend: str) -> None:
    broker = engine_settings(backend)
    options: Any = {"backend": backend, "backend_settings": broker, "sweeps": BLIND}
    other_app = tasker.App(
        database_url, registry=HandlerRegistry(), settings=ANNOUNCED, configuration=UNCONFIGURED, **options
    )
    async with (
        working(database_url, ANNOUNCED, **options) as serving,
        other_app as other,
        submitting(database_url, backend=backend, backend_settings=broker) as program,
    ):
        wake_by_name_only(runtime_of(serving))
        await runtime_of(other).serve("ears")
        await eventually(lambda: all(hears(app) and rests(app) for app in (serving, other)), "both rest")

        task = await program.submit(plan(), {})

        assert (await program.wait(task.task_uuid, timeout=60)).status == "complete"
        assert runtime_of(other).worker.unserved, "it had refused the step"
        if broker:
            await remove_queues(other.messaging, broker)
