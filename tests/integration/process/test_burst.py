"""A burst of tasks reaches a worker by its notifications alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import psycopg

from tasker.messaging.listening_modes import DeploymentMode
from tasker.orchestration.sweep import SweepSettings
from tasker.services.submission.submit import Submission
from tasker.settings.execution import Sweep
from tests.integration.process.programs import (
    NEVER_MS,
    QUICK,
    events_of,
    eventually,
    plan,
    settings,
    submitting,
    working,
)

TASKS, AT_ONCE, SLOTS = 1200, 100, 10
NEVER = replace(QUICK, poll_ms=NEVER_MS, lost_poll_ms=NEVER_MS)
BLIND = SweepSettings(Sweep(hint_grace_ms=NEVER_MS))
ENDED = "select count(*) from tasker.tasks where state = 'complete'"
ATTEMPTS = "select distinct attempts from tasker.workflow_steps"
REPAIRS = "select kind from tasker.repairs where repaired > 0"


async def test_a_burst_of_tasks_is_heard_of_and_every_step_runs_once(database_url: str) -> None:
    """The worker never polls and its sweeps send no hints again: what no notification tells it, it does not do."""
    chosen = settings(DeploymentMode.EVENT_DRIVEN_ONLY, NEVER, concurrency=SLOTS)
    async with working(database_url, chosen, sweeps=BLIND) as app, submitting(database_url) as other:
        await eventually(lambda: all(each.state.is_listening for each in events_of(app).listeners.values()), "it hears")
        for begin in range(0, TASKS, AT_ONCE):
            await other.submit_many(plan(), [Submission({}, idempotency_key=str(begin + n)) for n in range(AT_ONCE)])
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as observer:
            async with asyncio.timeout(60):
                while await (await observer.execute(ENDED)).fetchone() != (TASKS,):
                    await asyncio.sleep(0.02)
            assert await (await observer.execute(ATTEMPTS)).fetchall() == [(1,)]
            assert await (await observer.execute(REPAIRS)).fetchall() == []
