"""A template that a newer version has stored is refused by name, and does not stop the process that meets it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tasker import App
from tasker.app.configured import UNCONFIGURED
from tasker.db.connection import Connection
from tasker.engine.plans import PlanStore
from tasker.errors import PlanUnreadable
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template import compile_text
from tests.support.worker_settings import worker_settings

TEMPLATE = """
name: later
namespace_name: stored
version: "2.0.0"
steps:
  - {name: only, handler: stored.only}
"""
NARROW = replace(UNCONFIGURED, worker=worker_settings(window=1))


async def test_a_plan_with_what_this_version_does_not_know_is_named_with_what_to_do(database_url: str) -> None:
    connection = Connection(database_url)
    (plan,) = compile_text(TEMPLATE).plans
    stored = await PlanStore(connection).register(plan)
    await connection.execute("update tasker.templates set plan = jsonb_set(plan, '{steps,0,moon_phase}', '1')")
    plans = PlanStore(connection)
    for read in (plans.get(stored.template_id), plans.find("stored", "later")):
        with pytest.raises(PlanUnreadable, match=r"stored/later/2\.0\.0 .*moon_phase") as refused:
            await read
        assert "bring this process up to that version" in str(refused.value.hint)
    await connection.close()


async def test_a_worker_leaves_such_steps_to_newer_ones_and_runs_all_others(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """They cost no attempt, hold nobody up, and run once a worker that can read them comes (rule 16)."""
    async with App(database_url, work=False) as program:
        later, now = (compile_text(TEMPLATE.replace("later", name)).plans[0] for name in ("later", "now"))
        waiting = (await program.submit(later)).task_uuid
        await make_unreadable(database_url, "later")
        async with App(database_url, registry=handlers(), configuration=UNCONFIGURED) as old:
            await served(old)
            done = [await program.submit(now, idempotency_key=str(number)) for number in range(5)]
            for each in done:
                assert (await program.wait(each.task_uuid, timeout=60)).status == "complete"
            assert old.runtime is not None
            assert old.runtime.supervisor.crashes == {}
            await reached(program, waiting, "pending", "it takes no room in the queue")
        left = [message for message in caplog.messages if message.startswith("step_needs_newer_release ")]
        whose = f"correlation_id={waiting} task_uuid={waiting} step_uuid="
        assert left[0].startswith(f"step_needs_newer_release {whose}")
        assert " namespace=stored error=" in left[0]
        await make_unreadable(database_url, "later", back=True)
        async with App(database_url, registry=handlers(), configuration=UNCONFIGURED) as new:
            await served(new)
            assert (await program.wait(waiting, timeout=60)).status == "complete"


async def test_steps_for_newer_workers_hold_up_no_other_in_a_queue_for_one(database_url: str) -> None:
    async with App(database_url, work=False, configuration=NARROW) as program:
        later, now = (compile_text(TEMPLATE.replace("later", name)).plans[0] for name in ("later", "now"))
        waiting = [(await program.submit(later, idempotency_key=f"later {n}")).task_uuid for n in range(3)]
        done = [(await program.submit(now, idempotency_key=f"now {n}")).task_uuid for n in range(3)]
        await make_unreadable(database_url, "later")
        async with App(database_url, registry=handlers(), configuration=NARROW) as old:
            await served(old)
            for each in done:
                assert (await program.wait(each, timeout=30)).status == "complete"
            for each in waiting:
                await reached(program, each, "pending", "it waits beside the queue")
        await make_unreadable(database_url, "later", back=True)
        async with App(database_url, registry=handlers(), configuration=NARROW) as new:
            await served(new)
            for each in waiting:
                assert (await program.wait(each, timeout=30)).status == "complete"


async def make_unreadable(url: str, name: str, *, back: bool = False) -> None:
    """Put what no version knows into the stored template, or take it out again."""
    changed = "plan #- '{steps,0,moon_phase}'" if back else "jsonb_set(plan, '{steps,0,moon_phase}', '1')"
    connection = Connection(url)
    await connection.execute(f"update tasker.templates set plan = {changed} where plan->>'name' = '{name}'")
    await connection.close()


def handlers() -> HandlerRegistry:
    async def work(context: Any) -> dict[str, Any]:
        return {}

    found = HandlerRegistry()
    found.register("stored.only", work)
    return found


async def served(app: App) -> None:
    assert app.runtime is not None
    await app.runtime.serve("stored")


async def reached(app: App, task: str, state: str, why: str) -> None:
    """Return once the task's only step is in that state, which it never was run for."""
    async with asyncio.timeout(30):
        while (step := next(iter((await app.tasks.report(task)).steps.values()))).state != state:
            await asyncio.sleep(0.02)
    assert step.attempts == 0, why
