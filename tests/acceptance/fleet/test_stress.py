"""Real concurrency: processes work on random graphs and the examples, one is killed, and every promise still holds.

What happens is left to the scheduler; only the tasks and the luck of their handlers follow `TASKER_STRESS_SEED`.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template.plan import HandlerRef, Plan, RetryPolicy
from tests.acceptance.examples.workflow_case import WORKFLOWS, load_input
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.random_plans import (
    BATCHABLE,
    DECISION,
    DEFERRED,
    STANDARD,
    WORKER,
    Spec,
    build_plan,
    create_batches,
    create_steps,
)
from tests.support.waiting import until

SEED = int(os.environ.get("TASKER_STRESS_SEED", 1))
HANDLERS = Path(__file__).parent / "stress"
EXAMPLES = ("linear_math", "diamond", "tree", "conditional_approval", "nested_approval", "diamond_decision_batch")
TEMPLATES, TASKS_EACH = 30, 8
POLICY = RetryPolicy(max_attempts=8, backoff="fixed", backoff_base_ms=20)


def random_plan(random: Random, number: int) -> tuple[Plan, dict[str, Any]]:
    """A graph of plain steps with decisions and batches in between, and what those will choose."""
    specs, choices = [Spec("s0", retry=POLICY)], {}
    for n in range(1, random.randint(3, 7)):
        plain = [spec.name for spec in specs if spec.type not in (DECISION, BATCHABLE, WORKER)]
        above = tuple(random.sample(plain, min(len(plain), random.randint(1, 3))))
        kind = random.choice([None, None, DECISION, BATCHABLE])
        name = f"s{n}"
        if kind is None:
            specs.append(Spec(name, depends_on=above, retry=POLICY))
            continue
        names = [f"{name}w"] if kind is BATCHABLE else [f"{name}x", f"{name}y", f"{name}z"]
        branches = [Spec(branch, WORKER if kind is BATCHABLE else STANDARD, (name,)) for branch in names]
        specs += [Spec(name, kind, above), *branches, Spec(f"{name}j", DEFERRED, tuple(names))]
        chosen = random.sample(names, random.randint(0, len(names)))
        choices[name] = create_batches(f"{name}w", random.randint(0, 5)) if kind is BATCHABLE else create_steps(*chosen)
    plan = build_plan(*specs, namespace="stress", name=f"random{number}")
    steps = (replace(step, handler=_handler(step), retry=POLICY) for step in plan.steps)
    return replace(plan, steps=tuple(steps)), choices


def _handler(step: Any) -> HandlerRef:
    return HandlerRef("stress.choose" if step.type.expands else "stress.work")


@pytest.fixture
def fleet(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setenv("STRESS_DATABASE_URL", database_url)
    running = Fleet(database_url, tmp_path)
    yield running
    running.stop()


def submit(url: str, random: Random) -> list[str]:
    """Some hundred tasks, mixed."""

    async def create() -> list[str]:
        async with tasker.App(url, work=False) as app:
            answers: list[Any] = []
            for number in range(TEMPLATES):
                plan, choices = random_plan(random, number)
                requests = [
                    Submission({"n": n, "choices": choices}, random.choice([0, 0, 5])) for n in range(TASKS_EACH)
                ]
                answers += await app.submit_many(plan, requests)
            for folder in EXAMPLES:
                requests = [Submission(load_input(folder), idempotency_key=f"{folder} {n}") for n in range(10)]
                answers += await app.submit_many(WORKFLOWS / folder, requests)
            return [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]

    return asyncio.run(create())


@pytest.mark.slow
@pytest.mark.servers
def test_processes_lose_and_double_nothing_while_one_is_killed(database_url: str, fleet: Fleet) -> None:
    random = Random(SEED)
    oracle = Oracle(database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("create table stress_effects (step_uuid uuid, attempt int, pid int)")
        for name in ("one", "two", "three"):
            folders = [str(WORKFLOWS / folder) for folder in EXAMPLES]
            fleet.worker(name, *folders, "--namespace", "stress", "--handlers", str(HANDLERS), "--concurrency", "20")
        tasks = submit(database_url, random)
        until(lambda: oracle.finished() > len(tasks) // 4, "work is under way")
        fleet.kill("two")
        oracle.wait_for_the_end(tasks)

        states = Counter(state for (state,) in connection.execute("select state from tasker.tasks"))
        print(f"seed {SEED}: {dict(states)}, repaired {dict(oracle.repairs())}")
        assert len(tasks) == TEMPLATES * TASKS_EACH + 10 * len(EXAMPLES) == states["complete"] + states["error"]
        oracle.check(dict(connection.execute("select task_uuid::text, state from tasker.tasks").fetchall()))
        assert +oracle.repairs() == Counter(lost_worker=oracle.failures("worker_lost"))
        for promise in PROMISES:
            assert connection.execute(promise).fetchall() == [], promise
    oracle.close()


PROMISES = (
    # every run that counts left its mark: a finished step ran, and no attempt of it ran twice
    """select s.name, s.state from tasker.workflow_steps s join tasker.template_steps ts using (template_id, ordinal)
    where ts.handler like 'stress.%' and s.state in ('complete', 'error')
      and not exists (select from stress_effects e where e.step_uuid = s.workflow_step_uuid)""",
    "select step_uuid, attempt from stress_effects group by 1, 2 having count(*) > 1",
    # no run without a claim
    """select e.step_uuid from (select step_uuid, count(*) as runs from stress_effects group by 1) e
    where e.runs > (select count(*) from tasker.step_transition_log l
      where l.workflow_step_uuid = e.step_uuid and l.path like '%>in_progress')""",
    # nothing waits in a finished task but what a failure above it blocks
    """select s.name, s.state from tasker.workflow_steps s join tasker.tasks t using (task_uuid)
    where s.state not in ('complete', 'error') and not (s.state = 'pending' and t.state = 'error')""",
    # the history has every transition once, and ends where the row is
    """select workflow_step_uuid from tasker.workflow_step_transitions group by 1 having count(*) <> max(sort_key)
    or count(distinct sort_key) <> count(*) or count(*) filter (where most_recent) <> 1""",
    """select task_uuid from tasker.task_transitions group by 1 having count(*) <> max(sort_key)
    or count(distinct sort_key) <> count(*) or count(*) filter (where most_recent) <> 1""",
    # every accepted or failed attempt of a worker is audited
    """select workflow_step_uuid from tasker.workflow_step_transitions t left join tasker.workflow_step_result_audit a
      using (workflow_step_uuid, workflow_step_transition_uuid) where t.from_state = 'in_progress'
      and t.to_state like 'enqueued%for_orchestration' and a.workflow_step_uuid is null""",
)
