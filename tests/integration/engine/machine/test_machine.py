"""The engine as a rule machine: whatever happens in whatever order, it does what a naive model says.

One thread drives the real SQL, the real processor and the real sweeper for several logical workers, so a failure is a
list of actions that can be played again. `TASKER_PROPERTY=long` runs thousands of examples instead of a few.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tasker.contracts.plan import RetryPolicy
from tests.support.model import ENDED, PARKED, RUNS, Ending, Step
from tests.support.model_graph import CHOOSERS
from tests.support.random_plans import Scenario, scenarios
from tests.support.world import Attempt, Worker, World

LONG = os.environ.get("TASKER_PROPERTY") == "long"
PROFILE = settings(
    deadline=None, print_blob=True, max_examples=int(os.environ.get("TASKER_EXAMPLES", 3000)) if LONG else 25,
    stateful_step_count=60 if LONG else 35, suppress_health_check=list(HealthCheck), derandomize=not LONG,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, *([] if os.environ.get('TASKER_NOSHRINK') else [Phase.shrink])],
)  # fmt: skip
NAMESPACES = ("alpha", "beta")
TASKS = 5
NO_OUTCOME = {"value": "said nothing of what to create"}

POLICIES = st.builds(
    RetryPolicy,
    retryable=st.sampled_from([True, True, True, False]),
    max_attempts=st.integers(0, 4),
    backoff=st.sampled_from(["exponential", "fixed", "none"]),
    backoff_base_ms=st.sampled_from([100, 1000, 20_000]),
)
FAILURES = st.builds(
    Ending,
    failed=st.just(True),
    retryable=st.sampled_from([True, True, False]),
    retry_after=st.sampled_from([None, None, 0.0, 2.5]),
)


class Template(Scenario):
    """A scenario that a reader of a failure can take in."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        steps = (
            f"{s.name}:{s.type}({','.join(s.depends_on)}) {s.retry.max_attempts if s.retry.retryable else 'once'}"
            f" {s.retry.backoff} {s.retry.backoff_base_ms} {s.on_worker_lost}"
            for s in self.plan.steps
        )
        return f"{self.plan.namespace} {'; '.join(steps)} -> {dict(self.results)}"


@st.composite
def templates(draw: st.DrawFn) -> Template:
    """A random scenario in one of the namespaces, with random policies."""
    scenario = draw(scenarios(max_steps=8, max_batches=3))
    policies = draw(st.lists(POLICIES, min_size=1, max_size=3))
    lost = draw(st.sampled_from([("retry",), ("retry", "retry", "fail")]))
    steps = tuple(
        replace(step, retry=policies[n % len(policies)], on_worker_lost=lost[n % len(lost)])
        for n, step in enumerate(scenario.plan.steps)
    )
    return Template(replace(scenario.plan, steps=steps, namespace=draw(st.sampled_from(NAMESPACES))), scenario.results)


class Machine(RuleBasedStateMachine):
    """Rules: what users, workers, operators, time and misfortune do. After each one the world compares itself."""

    world: World
    counts: Counter[str]

    @initialize(window=st.sampled_from([1, 2, 5, 2000]), slots=st.lists(st.integers(1, 4), min_size=3, max_size=3))
    def begin(self, window: int, slots: list[int]) -> None:
        self.world.begin(window, NAMESPACES, slots)
        self.results: dict[str, Scenario] = {}
        self.keys = 0

    @property
    def model(self):
        return self.world.model

    # --- users -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.model.tasks) < TASKS)
    @rule(scenario=templates(), priorities=st.lists(st.sampled_from([0, 0, 3]), min_size=1, max_size=3), data=st.data())
    def submit(self, scenario: Scenario, priorities: list[int], data: st.DataObject) -> None:
        self.results[scenario.plan.hash] = scenario
        keys = []
        for _ in priorities:
            self.keys += data.draw(st.sampled_from([1, 1, 1, 0])) or self.keys == 0
            keys.append(f"key {self.keys}")
        self.world.submit(scenario.plan, priorities, keys)

    @precondition(lambda self: self.model.tasks)
    @rule(data=st.data(), lucky=st.integers(0, 3))
    def cancel(self, data: st.DataObject, lucky: int) -> None:
        if not lucky:
            self.world.cancel(data.draw(st.sampled_from(sorted(self.model.tasks))))

    @precondition(lambda self: self.model.tasks)
    @rule(data=st.data(), kind=st.sampled_from(["reset", "reset", "resolve", "complete"]))
    def operate(self, data: st.DataObject, kind: str) -> None:
        step = data.draw(st.sampled_from(sorted(self.model.steps("error") or self.model.steps(), key=_key)))
        self.world.operate(step, kind, self.good(step).result if kind == "complete" else None)

    # --- workers -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.mail.hints)
    @rule(data=st.data(), n=st.integers(0, 2), answer_lost=st.sampled_from([False] * 9 + [True]))
    def claim(self, data: st.DataObject, n: int, answer_lost: bool) -> None:
        worker = self.world.workers[n]
        hints = data.draw(st.permutations(self.world.mail.hints))[: data.draw(st.integers(1, 4))]
        self.world.faults["answer lost"] += answer_lost
        self.world.claim(worker, hints, answer_lost=answer_lost)

    @precondition(lambda self: self.world.mail.hints)
    @rule(data=st.data(), n=st.integers(0, 2), queued=st.sampled_from([False, False, True]))
    def work(self, data: st.DataObject, n: int, queued: bool) -> None:
        """The worker takes what it finds first and brings what it has."""
        world, worker = self.world, self.world.workers[n]
        world.claim(worker, world.mail.hints[: max(1, worker.slots - len(worker.running))])
        attempts = [attempt for attempt in worker.running if not attempt.parked]
        for attempt in attempts:
            attempt.ending = attempt.ending or data.draw(self.endings(self.model.step(attempt.key)))
        if attempts:
            (world.park if queued else world.finish)(worker, attempts)

    @precondition(lambda self: any(worker.running for worker in self.world.workers))
    @rule(data=st.data(), how=st.sampled_from(["inline"] * 4 + ["queued"] * 3 + ["inline, lost", "queued, lost"]))
    def finish(self, data: st.DataObject, how: str) -> None:
        worker = data.draw(st.sampled_from([worker for worker in self.world.workers if worker.running]))
        attempts = data.draw(st.lists(st.sampled_from(worker.running), min_size=1, max_size=4, unique=True))
        if data.draw(st.integers(0, 5)) == 0:
            attempts += self._brought_again(data)
        for attempt in attempts:
            attempt.ending = attempt.ending or data.draw(self.endings(self.model.step(attempt.key)))
        lost = how.endswith("lost")
        self.world.faults["answer lost"] += lost
        path = self.world.park if how.startswith("queued") else self.world.finish
        path(worker, [a for a in attempts if a.parked == how.startswith("queued") or a in worker.running and not a.parked],
             answer_lost=lost)  # fmt: skip

    def _brought_again(self, data: st.DataObject) -> list[Attempt]:
        return data.draw(st.lists(st.sampled_from([a for _, a in self.world.spent]), max_size=2)) if self.world.spent else []

    @precondition(lambda self: self.world.spent)
    @rule(data=st.data())
    def bring_again(self, data: st.DataObject) -> None:
        """A result that was stored already, or of a worker that had died."""
        worker, attempt = data.draw(st.sampled_from(self.world.spent))
        attempt.ending = attempt.ending or data.draw(self.endings(self.model.step(attempt.key)))
        (self.world.park if attempt.parked else self.world.finish)(worker, [attempt])

    @precondition(lambda self: any(worker.running for worker in self.world.workers))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from([worker for worker in self.world.workers if worker.running]))
        self.world.release(worker, data.draw(st.lists(st.sampled_from(worker.running), min_size=1, max_size=2, unique=True)))

    @precondition(lambda self: any(worker.running for worker in self.world.workers))
    @rule(data=st.data(), cursor=st.integers(0, 9))
    def checkpoint(self, data: st.DataObject, cursor: int) -> None:
        attempts = [a for worker in self.world.workers for a in worker.running] + [a for _, a in self.world.spent]
        self.world.checkpoint(data.draw(st.sampled_from(attempts)), cursor)

    @precondition(lambda self: self.model.tasks)
    @rule(data=st.data(), n=st.integers(0, 2))
    def lack_handler(self, data: st.DataObject, n: int) -> None:
        """The worker cannot resolve some handler; it puts such steps back when it meets them."""
        steps = sorted({f"{step.task.template}:{step.plan.ordinal}" for step in self.model.steps()})
        self.world.workers[n].unserved = set(data.draw(st.lists(st.sampled_from(steps), max_size=3)))

    @rule(n=st.integers(0, 2))
    def reconcile(self, n: int) -> None:
        self.world.reconcile(self.world.workers[n])

    @precondition(lambda self: self.model.held())
    @rule(n=st.integers(0, 2))
    def release_held(self, n: int) -> None:
        self.world.release_held(self.world.workers[n], list(self.world.namespaces.values()))

    # --- orchestrators and time --------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.mail.results)
    @rule(data=st.data())
    def orchestrate(self, data: st.DataObject) -> None:
        messages = data.draw(st.permutations(self.world.mail.results))
        self.world.orchestrate(messages[: data.draw(st.integers(1, 4))])

    @precondition(lambda self: self.model.due())
    @rule(n=st.integers(0, 2))
    def promote(self, n: int) -> None:
        self.world.promote(self.world.workers[n])

    @rule(n=st.integers(0, 2))
    def sweep(self, n: int) -> None:
        self.world.sweep(self.world.workers[n])

    @precondition(lambda self: self.model.tasks)
    @rule(milliseconds=st.sampled_from([1, 100, 1000, 2500, 6000, 20_000, 45_000]))
    def tick(self, milliseconds: int) -> None:
        self.world.tick(milliseconds)

    # --- misfortune --------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.mail.hints)
    @rule(data=st.data(), what=st.sampled_from(["lost", "doubled", "strange"]))
    def hint_goes_astray(self, data: st.DataObject, what: str) -> None:
        hint = data.draw(st.sampled_from(self.world.mail.hints))
        self.world.faults[f"hint {what}"] += 1
        if what == "lost":
            self.world.mail.hints.remove(hint)
        else:
            strange = {"step": "00000000-0000-7000-9000-00000000ffff"}
            self.world.mail.hints.append({**hint, **(strange if what == "strange" else {})})

    @precondition(lambda self: self.world.mail.results)
    @rule(data=st.data(), lost=st.booleans())
    def result_message_goes_astray(self, data: st.DataObject, lost: bool) -> None:
        message = data.draw(st.sampled_from(self.world.mail.results))
        self.world.faults["result message"] += 1
        (self.world.mail.results.remove if lost else self.world.mail.results.append)(message)

    @precondition(lambda self: any(worker.running for worker in self.world.workers))
    @rule(n=st.integers(0, 2))
    def die(self, n: int) -> None:
        self.world.faults["died"] += 1
        self.world.die(self.world.workers[n])

    @precondition(lambda self: any(worker.running for worker in self.world.workers))
    @rule(n=st.integers(0, 2))
    def fall_silent(self, n: int) -> None:
        """The worker goes on, its beats do not arrive."""
        self.world.faults["silent"] += 1
        self.world.workers[n].alive = False

    @precondition(lambda self: _rivals(self.world))
    @rule(data=st.data())
    def race(self, data: st.DataObject) -> None:
        """Between planning what one step creates and writing it, another one of the task decides, or it is cancelled."""
        mine, other = data.draw(st.sampled_from(_rivals(self.world)))
        for _, attempt in (mine, other):
            attempt.ending = attempt.ending or data.draw(self.endings(self.model.step(attempt.key)))
        world = self.world
        if data.draw(st.integers(0, 4)):
            results, caller = world._results([other[1]]), world._caller(other[0], 0)
            world.engine.intruder = ("graph", lambda: world.processor.process(results, caller))
        else:
            world.engine.intruder = ("graph", lambda: world.tasks.cancel(mine[1].key[0]))
        world.finish(mine[0], [mine[1]])
        world.engine.intruder = None

    @precondition(lambda self: any(worker.running for worker in self.world.workers))
    @rule(data=st.data(), n=st.integers(0, 2))
    def result_meets_sweep(self, data: st.DataObject, n: int) -> None:
        """A sweep finds a step lost, and before it can take it away its result arrives."""
        worker = data.draw(st.sampled_from([worker for worker in self.world.workers if worker.running]))
        attempt = data.draw(st.sampled_from(worker.running))
        if attempt.parked:
            return
        attempt.ending = attempt.ending or data.draw(self.endings(self.model.step(attempt.key)))
        world = self.world
        results, caller = world._results([attempt]), world._caller(worker, 0)
        world.sweep(world.workers[n], lambda: world.processor.process(results, caller))
        world._drop(worker, [attempt])

    # --- endings -----------------------------------------------------------------------------------------------------

    def good(self, step: Step) -> Ending:
        """The result that lets the task go on."""
        chosen = self.results[step.task.plan.hash].results
        return Ending(chosen[step.plan.name] if step.plan.type in CHOOSERS else {"value": f"{step.name} {step.token}"})

    def endings(self, step: Step) -> st.SearchStrategy[Ending]:
        good = st.just(self.good(step))
        silent = st.just(Ending(NO_OUTCOME)) if step.plan.type in CHOOSERS else good
        return st.integers(0, 9).flatmap(lambda n: good if n < 6 else FAILURES if n < 9 else silent)

    def teardown(self) -> None:
        """No more misfortune: every task must come to its end."""
        if not self.world.sound:
            return
        self._settle()
        assert not self.model.steps("in_progress", "enqueued", "waiting_for_retry", *PARKED)
        assert all(task.state != "open" for task in self.model.tasks.values())
        assert all(step.accepted <= 1 for step in self.model.steps())
        if not +self.world.faults:
            assert not +self.world.repaired, self.world.repaired
        self.counts.update(self._counted())

    def _counted(self) -> Counter[str]:
        """What this example was about, for whoever wonders whether the machine reaches what it should."""
        steps, tasks = self.model.steps(), self.model.tasks.values()
        found = Counter({f"task {state}": sum(t.state == state for t in tasks) for state in ("complete", "error", "cancelled")})
        found |= Counter({f"fault: {name}": number for name, number in self.world.faults.items()})
        found |= Counter({f"repaired: {name}": number for name, number in self.world.repaired.items()})
        found |= Counter(self.world.verdicts)
        created = [step for step in steps if not step.plan.static]
        return found | Counter(
            examples=1, steps=len(steps), created=len(created), claims=sum(step.claims for step in steps),
            repeated=sum(step.claims > 1 for step in steps), resolved=sum(s.state == "resolved_manually" for s in steps),
            deep=sum(step.plan.type in CHOOSERS for step in created), failed=sum(step.failures for step in steps),
        )  # fmt: skip

    def _settle(self) -> None:
        world = self.world
        for worker in world.workers:
            worker.alive, worker.unserved = True, set()
            if world.model.leases[worker.identity] < world.model.now or worker.running and not worker.alive:
                world.die(worker)
        for turn in range(300):
            for worker in world.workers:
                self._turn(worker)
            if world.mail.results:
                world.orchestrate(list(world.mail.results))
            if all(task.state != "open" for task in world.model.tasks.values()):
                return
            world.sweep(world.workers[turn % 3])
            if not world.mail.hints and not any(worker.running for worker in world.workers):
                world.tick(self._pause())
        raise AssertionError("the tasks never come to an end")

    def _turn(self, worker: Worker) -> None:
        world = self.world
        world.reconcile(worker)
        if self.model.due():
            world.promote(worker)
        if self.model.held():
            world.release_held(worker, list(world.namespaces.values()))
        if world.mail.hints:
            world.claim(worker, world.mail.hints[: worker.slots])
        if worker.running:
            for attempt in worker.running:
                attempt.ending = attempt.ending or self.good(self.model.step(attempt.key))
            parked = [attempt for attempt in worker.running if attempt.parked]
            world.finish(worker, [attempt for attempt in worker.running if not attempt.parked])
            if parked:
                world.park(worker, parked)

    def _pause(self) -> int:
        """Until the next retry is due; otherwise long enough for the sweep to miss something."""
        waiting = [step.due for step in self.model.steps("waiting_for_retry")]
        return max(1, min(waiting) - self.model.now) if waiting else 6_000


def _key(step: Step) -> tuple[str, str, bool]:
    return (*step.key, step.state in ENDED)


def _rivals(world: World) -> list[tuple[tuple[Worker, Attempt], tuple[Worker, Attempt]]]:
    """Pairs of attempts of decision or batchable steps of one task."""
    running = [
        (worker, attempt)
        for worker in world.workers
        for attempt in worker.running
        if not attempt.parked and world.model.step(attempt.key).plan.type in CHOOSERS
        and world.model.step(attempt.key).state == RUNS
    ]  # fmt: skip
    return [(a, b) for a in running for b in running if a is not b and a[1].key[0] == b[1].key[0] and a[1].key != b[1].key]


@pytest.fixture
def world(module_database_url: str) -> Iterator[World]:
    world = World(module_database_url)
    yield world
    world.close()


def test_the_engine_does_what_the_model_says(world: World, record_property: pytest.FixtureRequest) -> None:
    counts: Counter[str] = Counter()
    machine = type("EngineMachine", (Machine,), {"world": world, "counts": counts})
    run_state_machine_as_test(machine, settings=PROFILE)
    record_property("counts", counts)
    print(dict(sorted(counts.items())))


