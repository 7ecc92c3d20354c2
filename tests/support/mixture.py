"""Mixed tasks: every example workflow with each of its inputs, and slow tasks that faults hit in the middle.

Each is judged by the case that it came from. A task that lost a worker may have come to another end, but only by the
step that was lost: everything else is as the case says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import tasker
from tasker.contracts.plan import Plan
from tasker.services.submission import Request
from tasker.services.templates import load_plans
from tests.acceptance.workflow_case import Case
from tests.acceptance.workflow_cases import CASES, FOLDERS
from tests.support.fleet import ROOT

ENVIRONMENT = "test"
SLOW = ROOT / "tests" / "chaos" / "workflow"
CSV = Case(
    "csv",
    "csv_inventory",
    ("analyze_csv", *(f"process_csv_batch_{n:03}" for n in range(1, 6)), "aggregate_csv_results"),
    holds={"aggregate_csv_results": {"total_processed": 1_000, "worker_count": 5}},
)
LOST = ("worker_lost", "checkpoint_save_failed")
SLOW_CASE = Case("slow", "", ("first", "left", "right", "flaky", "last"))


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


async def submit(app: tasker.App, mixed: Sequence[Mixed]) -> None:
    """Create the tasks, each by itself. What was created before is not created again."""
    for each in mixed:
        await app.submit_many(each.plan, [Request(each.input, idempotency_key=each.key, reason=each.key)])


def serving() -> list[str]:
    """A worker's options that let it serve every task of the mixture."""
    folders: list[Path] = [*FOLDERS, SLOW]
    namespaces = sorted({load_plans(folder)[0].namespace for folder in folders})
    return [part for name in namespaces for part in ("--namespace", name)] + [
        part for folder in folders for part in ("--handlers", str(folder))
    ]


@dataclass
class Found:
    """A task as the database has it: its state, and by step name state, attempts, result and failures."""

    state: str
    states: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def lost(self) -> Counter[str]:
        """How many attempts of each step were lost with their worker, or with a database that took no checkpoint."""
        return Counter(
            {step: sum(error["error_type"] in LOST for error in all_) for step, all_ in self.failures.items()}
        )


def complaints(case: Case, found: Found) -> Iterator[str]:
    """What is not as the case says, and is not explained by a lost worker either."""
    lost = +found.lost
    broken = [step for step, state in found.states.items() if state == "error"]
    explained = [step for step in broken if step != (case.failed and case.failed.step) and lost[step]]
    yield from _wrong_results(case, found)
    if explained:
        if found.state != "error":
            yield f"{case.id}: {explained} failed and the task is {found.state}"
        return
    yield from _wrong_states(case, found)
    yield from _wrong_attempts(case, found, lost)
    if case.failed and not lost:
        error = found.failures[case.failed.step][-1]
        if (error["error_type"], error["retryable"]) != (case.failed.error_type, case.failed.retryable):
            yield f"{case.id}: {case.failed.step} failed with {error}"


def _wrong_states(case: Case, found: Found) -> Iterator[str]:
    expected = {step: case.state_of(step) for step in case.steps}
    if (found.state, found.states) != (case.status, expected):
        yield f"{case.id}: {found.state} {found.states}, expected {case.status} {expected}"


def _wrong_results(case: Case, found: Found) -> Iterator[str]:
    for step, state in found.states.items():
        result = found.results.get(step)
        if (state == "complete") != (result is not None):
            yield f"{case.id}: {step} is {state} and its result is {result}"
        if state != "complete" or result is None:
            continue
        if step in case.results and result != case.results[step]:
            yield f"{case.id}: {step} came to {result}, expected {case.results[step]}"
        part = {key: result.get(key) for key in case.holds.get(step, ())}
        if part != dict(case.holds.get(step, {})):
            yield f"{case.id}: {step} holds {part}, expected {case.holds[step]}"


def _wrong_attempts(case: Case, found: Found, lost: Counter[str]) -> Iterator[str]:
    for step, attempts in case.attempts.items():
        if not attempts <= found.attempts[step] <= attempts + lost[step]:
            yield f"{case.id}: {step} took {found.attempts[step]} attempts, {lost[step]} lost, expected {attempts}"
