"""A step whose inputs are larger than the database can answer fails, and no other waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tasker import App
from tasker.db.connection import Connection
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template import compile_text

PARENTS = 68
NAMES = [f"part{number:02}" for number in range(PARENTS)]
JOIN = f"""
name: join
namespace_name: large
version: "1.0.0"
steps:
  - {{name: join, handler: large.join, dependencies: [{", ".join(NAMES)}]}}
""" + "".join(f"  - {{name: {name}, handler: large.part}}\n" for name in NAMES)
ONE = """
name: one
namespace_name: large
version: "1.0.0"
steps:
  - {name: only, handler: large.one}
"""
ENLARGE = """with large as (select jsonb_build_object('text', repeat('x', 4000000)) as value)
update tasker.step_results set result = large.value, bytes = pg_column_size(large.value) from large"""


async def test_inputs_that_cannot_be_answered_fail_their_step_alone(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    join, one = compile_text(JOIN).plans[0], compile_text(ONE).plans[0]
    async with App(database_url, work=False) as program:
        task = (await program.submit(join)).task_uuid
        async with App(database_url, registry=handlers("large.part")) as first:
            await served(first)
            await completed(database_url, PARENTS)
        await execute(database_url, ENLARGE)
        others = [(await program.submit(one, {"number": number})).task_uuid for number in range(3)]
        async with App(database_url, registry=handlers("large.join", "large.one")) as second:
            await served(second)
            assert (await program.wait(task, timeout=60)).status == "error"
            for other in others:
                assert (await program.wait(other, timeout=60)).status == "complete"
    ((failure,),) = await execute(database_url, "select error from tasker.step_failures")
    assert (failure["error_type"], failure["retryable"], failure["attempt"]) == ("inputs_too_large", False, 1)
    assert "272.0 MB (68 results" in failure["message"]
    assert "part00 4.0 MB" in failure["message"]
    assert failure["metadata"]["bytes"] > PARENTS * 4_000_000
    (line,) = [each.getMessage() for each in caplog.records if "error_type=inputs_too_large" in each.getMessage()]
    assert f"task_uuid={task}" in line


async def test_a_step_that_the_database_refuses_to_claim_fails_alone(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a claim is refused for, its other steps run, and the log says once why it was refused."""
    one = compile_text(ONE).plans[0]
    async with App(database_url, work=False) as program:
        tasks = [(await program.submit(one, {"number": number})).task_uuid for number in range(5)]
        claim = "tasker.placed_path(tasker.path_code('enqueued'), 'claim')"
        refused = f"workflow_step_uuid <> tasker.step_uuid('{tasks[2]}', 1) or path <> {claim}"
        await execute(database_url, f"alter table tasker.step_moves add constraint stuck check ({refused})")
        async with App(database_url, registry=handlers("large.one")) as worker:
            await served(worker)
            ends = [(await program.wait(task, timeout=30)).status for task in tasks]
    assert ends == ["complete", "complete", "error", "complete", "complete"]
    ((failure,),) = await execute(database_url, "select error from tasker.step_failures")
    assert (failure["error_type"], failure["retryable"]) == ("not_claimable", False)
    assert 'violates check constraint "stuck"' in failure["message"]
    assert failure["fingerprint"]
    (line,) = [each for each in caplog.messages if each.startswith("claim_refused ")]
    assert 'violates check constraint "stuck"' in line
    (told,) = [each for each in caplog.messages if each.startswith("step_not_claimable ")]
    assert f"task_uuid={tasks[2]}" in told


def handlers(*names: str) -> HandlerRegistry:
    async def work(context: Any) -> dict[str, Any]:
        return {}

    registry = HandlerRegistry()
    for name in names:
        registry.register(name, work)
    return registry


async def served(app: App) -> None:
    assert app.runtime is not None
    await app.runtime.serve("large")


async def completed(url: str, steps: int) -> None:
    async with asyncio.timeout(60):
        while (await execute(url, "select count(*) from tasker.step_results"))[0][0] < steps:
            await asyncio.sleep(0.02)


async def execute(url: str, statement: str) -> list[Any]:
    connection = Connection(url)
    try:
        return list(await connection.execute(statement))
    finally:
        await connection.close()
