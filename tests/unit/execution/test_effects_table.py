"""The table of docs/effects.md: each row is made from attempts that run here."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tasker.engine.exchange import Result
from tasker.engine.sweep_answers import Orphan, WorkerLabel
from tasker.execution.attempt.attempt import AttemptEnd, ClaimReleased
from tasker.orchestration.changes import change_of, lost_change
from tasker.template import compile_text
from tasker.template.effects import EFFECTS, IDEMPOTENT
from tasker.template.plan import Plan, StepPlan
from tests.unit.execution.bench import Bench

PAGE = Path(__file__).parents[3] / "docs" / "effects.md"
BEGIN, END = "<!-- truth table -->\n", "<!-- end of the truth table -->"
HEADER = ("`effect`", "handler raises", "timeout", "lost worker", "worker stops meanwhile", "runs ahead")


def planned(effect: str) -> Plan:
    text = "name: x\nnamespace: x\nversion: 1.0.0\nsteps:\n"
    text += (
        f"- {{name: a, handler: h, effect: {effect}}}\n- {{name: b, handler: h, effect: {effect}, dependencies: [a]}}"
    )
    return compile_text(text).plans[0]


def what(change: Any) -> str:
    if change["kind"] == "retry":
        return "runs again"
    error = str(change["e"])
    return "fails: `outcome_unknown`" if "outcome_unknown" in error else "fails"


def told(end: AttemptEnd) -> str:
    if isinstance(end, ClaimReleased):
        return "runs again, without using an attempt"
    assert isinstance(end, Result)
    return what(change_of(end, 0.5))


async def raising(context: Any) -> None:
    raise RuntimeError


async def blocking(context: Any) -> None:
    await asyncio.Event().wait()


async def row(bench: Bench, effect: str) -> list[str]:
    plan = planned(effect)
    step: StepPlan = plan.steps[0]
    fields = {"effect": step.effect, "retry": step.retry, "on_worker_lost": step.on_worker_lost, "name": "a"}
    orphan = Orphan("s", "t", 1, "x", 1, 0, 1, label=WorkerLabel("w", None, None, None), overdue=False, silent_ms=1)
    stopped = bench.attempt(blocking, **fields)
    running = asyncio.ensure_future(bench.end(stopped))
    while not stopped.cancel.began:
        await asyncio.sleep(0)
    stopped.cancel.set(ClaimReleased)
    return [
        f"`{effect}`" + (" (default)" if effect == IDEMPOTENT else ""),
        told(await bench.run(raising, **fields)),
        told(await bench.run(blocking, timeout_seconds=0.001, **fields)),
        what(lost_change(orphan, step, 0.5)),
        told(await running),
        "yes" if "a" in plan.chains else "no",
    ]


async def test_the_table_of_the_page_is_what_steps_do(bench: Bench) -> None:
    rows = [list(HEADER), ["---"] * len(HEADER), *[await row(bench, effect) for effect in EFFECTS]]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    if os.environ.get("TASKER_RECORD"):
        PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2])

    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0] == table, "run this test with TASKER_RECORD=1"
