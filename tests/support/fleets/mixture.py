"""Mixed tasks: every example workflow with each of its inputs, and slow tasks that faults hit in the middle.

Each is judged by the case that it came from (tests/support/fleets/judging.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import tasker
from tasker.services.submission.submit import Submission
from tasker.services.workflows.files import load_plans
from tasker.template.plan import Plan
from tests.acceptance.examples.workflow_case import Case
from tests.acceptance.examples.workflow_cases import CASES, FOLDERS, WITH_HANDLERS
from tests.support.fleets.fleet import ROOT

ENVIRONMENT = "test"
SLOW = ROOT / "tests" / "chaos" / "workflow"
CSV = Case(
    "csv",
    "csv_inventory",
    ("analyze_csv", *(f"process_csv_batch_{n:03}" for n in range(1, 6)), "aggregate_csv_results"),
    holds={"aggregate_csv_results": {"total_processed": 1_000, "worker_count": 5}},
)
SLOW_CASE = Case("slow", "", ("first", "left", "right", "flaky", "last"), attempts={"flaky": 2})


@dataclass(frozen=True)
class Mixed:
    """A task to submit: the case, the input, and the key that makes it one of a kind, which is its reason too."""

    case: Case
    plan: Plan
    input: Mapping[str, Any]
    key: str


def mixture(count: int, *, seconds: float, seed: int) -> list[Mixed]:
    """`count` tasks in random order: one half slow ones whose steps take `seconds`, the other the cases in turn."""
    random = Random(seed)
    cases = random.sample([*CASES, CSV], len(CASES) + 1)
    plans = {folder.name: load_plans(folder, ENVIRONMENT)[0] for folder in FOLDERS}
    examples = [
        Mixed(case, plans[case.folder], case.input, f"{case.id} {n}")
        for n, case in enumerate(islice(cycle(cases), count // 2))
    ]
    mixed = examples + slow_tasks(count - len(examples), seconds=seconds, seed=seed)
    return random.sample(mixed, len(mixed))


def slow_tasks(count: int, *, seconds: float, seed: int) -> list[Mixed]:
    """`count` tasks whose steps take `seconds`."""
    (plan,) = load_plans(SLOW)
    return [Mixed(SLOW_CASE, plan, {"seconds": seconds}, f"slow {seed} {n}") for n in range(count)]


async def register_children(app: tasker.App) -> None:
    """Register the templates whose tasks steps of other ones start."""
    for folder in FOLDERS:
        for plan in load_plans(folder, ENVIRONMENT)[1:]:
            await app.plans.register(plan)


async def submit(app: tasker.App, mixed: Sequence[Mixed], *, pause: float = 0.0) -> None:
    """Create the tasks, each by itself, `pause` seconds apart. What was created before is not created again."""
    for each in mixed:
        await asyncio.sleep(pause)
        await app.submit_many(each.plan, [Submission(each.input, idempotency_key=each.key, reason=each.key)])


def serving() -> list[str]:
    """A worker's options that let it serve every task of the mixture."""
    folders: list[Path] = [*FOLDERS, SLOW]
    namespaces = sorted({load_plans(folder)[0].namespace for folder in folders})
    return [part for name in namespaces for part in ("--namespace", name)] + [
        part for folder in [*WITH_HANDLERS, SLOW] for part in ("--handlers", str(folder))
    ]
