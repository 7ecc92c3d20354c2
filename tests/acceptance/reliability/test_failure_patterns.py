"""Steps that fail in every pattern, in graphs of every shape: the model says what must come of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from random import Random

import pytest

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template.plan import HandlerRef, Plan, RetryPolicy
from tests.support.fleets.oracle import Oracle
from tests.support.random_plans import Spec, build_plan

HANDLERS = Path(__file__).parent / "steps"
RETRY = RetryPolicy(max_attempts=2, backoff="fixed", backoff_base_ms=1)
FATES = ("ok", "permanent", "once", "always")
SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "linear": {"a": (), "b": ("a",), "c": ("b",), "d": ("c",)},
    "diamond": {"start": (), "left": ("start",), "right": ("start",), "join": ("left", "right")},
    "parallel": {"success": (), "permanent": (), "retryable": ()},
    "tree": {
        "root": (),
        "l": ("root",),
        "r": ("root",),
        "ll": ("l",),
        "lr": ("l",),
        "rl": ("r",),
        "end": ("ll", "lr", "rl"),
    },
    "mixed": {"i": (), "j": (), "k": ("i",), "m": ("i", "j"), "n": ("j",), "o": ("k", "m"), "p": ("o", "n")},
}
MOST = 256
"""Patterns of each shape: all of them where there are no more, else a sample."""


@dataclass(frozen=True)
class Expected:
    """The model: states and attempts of the steps."""

    states: Mapping[str, str]
    attempts: Mapping[str, int]

    @classmethod
    def of(cls, parents: Mapping[str, tuple[str, ...]], fates: Mapping[str, str]) -> Expected:
        """A step runs when all its parents are complete; it is tried twice at most."""
        states: dict[str, str] = {}
        for step, above in parents.items():
            ready = all(states[parent] == "complete" for parent in above)
            fails = fates[step] in ("permanent", "always")
            states[step] = "pending" if not ready else "error" if fails else "complete"
        tried = {"ok": 1, "permanent": 1, "once": 2, "always": 2}
        return cls(states, {step: 0 if states[step] == "pending" else tried[fates[step]] for step in parents})

    @property
    def status(self) -> str:
        return "error" if "error" in self.states.values() else "complete"


def plan_of(shape: str) -> Plan:
    plan = build_plan(*(Spec(n, depends_on=above) for n, above in SHAPES[shape].items()), namespace="fate", name=shape)
    steps = (replace(step, handler=HandlerRef("steps.fated"), retry=RETRY) for step in plan.steps)
    return replace(plan, steps=tuple(steps))


def patterns(shape: str) -> Iterator[dict[str, str]]:
    """What happens to the steps: every pattern, or as many as there may be."""
    names = list(SHAPES[shape])
    if len(FATES) ** len(names) <= MOST:
        return (dict(zip(names, fates, strict=True)) for fates in product(FATES, repeat=len(names)))
    random = Random(1)
    return islice(iter(lambda: {name: random.choice((*FATES, "ok", "once")) for name in names}, {}), MOST)


async def run_all(url: str, shape: str) -> dict[str, dict[str, str]]:
    """Run every pattern of a shape; the patterns by task."""
    chosen = list(patterns(shape))
    async with tasker.App(url, handlers=[HANDLERS]) as app:
        requests = [Submission({"fates": fates}, idempotency_key=str(n)) for n, fates in enumerate(chosen)]
        answers = await app.submit_many(plan_of(shape), requests)
        tasks = [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]
        await asyncio.gather(*(app.wait(task) for task in tasks))
    return dict(zip(tasks, chosen, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_pattern_of_failures_ends_as_the_model_says(database_url: str, shape: str) -> None:
    tasks = asyncio.run(run_all(database_url, shape))
    oracle = Oracle(database_url)
    found = oracle.found([*tasks])
    failed = dict(oracle.rows("select task_uuid::text, failed from tasker.tasks"))
    for task, fates in tasks.items():
        expected = Expected.of(SHAPES[shape], fates)
        assert (found[task].state, found[task].states) == (expected.status, dict(expected.states)), fates
        assert found[task].attempts == dict(expected.attempts), fates
        assert failed[task] == [*expected.states.values()].count("error"), fates
    oracle.check_promises()
    assert not +oracle.repairs()
    oracle.close()


def test_of_three_parallel_steps_one_that_fails_for_good_blocks_the_task(database_url: str) -> None:
    """A success, a permanent failure and one that is tried twice, whatever their order: blocked, then in error."""
    fates = {"success": "ok", "permanent": "permanent", "retryable": "always"}

    async def run() -> list[str]:
        async with tasker.App(database_url, handlers=[HANDLERS]) as app:
            requests = [Submission({"fates": fates}, idempotency_key=str(n)) for n in range(50)]
            answers = await app.submit_many(plan_of("parallel"), requests)
            tasks = [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]
            await asyncio.gather(*(app.wait(task) for task in tasks))
            return tasks

    tasks = asyncio.run(run())
    oracle = Oracle(database_url)
    oracle.check(dict.fromkeys(tasks, "error"))
    ends = oracle.rows("select path, count(*) from tasker.task_transition_log where path like '%>error' group by 1")
    assert sum(count for _, count in ends) == len(tasks)
    assert all(path.endswith("blocked_by_failures>error") for path, _ in ends), ends
    oracle.close()
