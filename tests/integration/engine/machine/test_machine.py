"""The engine as a rule machine: whatever happens in whatever order, it does what a naive model says.

One thread drives the real SQL, the real processor and the real sweeper for several logical workers, so a failure is a
list of actions that can be played again. `TASKER_PROPERTY=long` runs thousands of examples instead of a few.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.support.model.expiry import expired
from tests.support.model.graph import CHOOSERS
from tests.support.model.parts import ENDED, PARKED, RUNS, Ending, Step, Task, pauses_of
from tests.support.random_plans import Scenario
from tests.support.servers import brokers
from tests.support.world.failover import lose_claim
from tests.support.world.intruders import DEEDS, deciding, deed, moments
from tests.support.world.parts import NOBODY, Attempt, Handed, Worker
from tests.support.world.rerunning import rerun, to_rerun
from tests.support.world.settling import Settling, hold_both, rivals, take_first
from tests.support.world.templates import FAILURES, NAMESPACES, PRIORITIES, TIMES, templates
from tests.support.world.world import World

LONG = os.environ.get("TASKER_PROPERTY") == "long"
pytestmark = [pytest.mark.timeout(0)] if LONG else []
EXAMPLES = int(os.environ.get("TASKER_EXAMPLES") or (3000 if LONG else 25))
NO_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
PROFILE = settings(
    deadline=None,
    print_blob=True,
    derandomize=not LONG,
    max_examples=EXAMPLES,
    stateful_step_count=60 if LONG else 35,
    suppress_health_check=list(HealthCheck),
    phases=NO_SHRINKING if os.environ.get("TASKER_NOSHRINK") else list(Phase),
)
CARRIED = settings(PROFILE, max_examples=max(6, EXAMPLES // 10), phases=NO_SHRINKING)
"""Messages come in the backend's order, so a failure cannot be made smaller."""
TASKS = 5
NO_OUTCOME = {"value": "said nothing of what to create"}


class Machine(RuleBasedStateMachine):
    """Rules: what users, workers, operators, time and misfortune do. After each one the world compares itself."""

    world: World
    counts: Counter[str]

    @initialize(
        window=st.sampled_from([1, 2, 5, 2000]),
        slots=st.lists(st.integers(1, 4), min_size=3, max_size=3),
        seed=st.integers(0, 2**16),
    )
    def begin(self, window: int, slots: list[int], seed: int) -> None:
        self.world.begin(window, NAMESPACES, slots)
        self.random = Random(seed)
        self.results: dict[str, Scenario] = {}
        self.keys = 0

    @property
    def model(self):
        return self.world.model

    # --- users -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.model.tasks) < TASKS)
    @rule(scenario=templates(), priorities=PRIORITIES, data=st.data())
    def submit(self, scenario: Scenario, priorities: list[int], data: st.DataObject) -> None:
        self.results[scenario.plan.hash] = scenario
        keys = []
        for _ in priorities:
            self.keys += data.draw(st.sampled_from([1, 1, 1, 0])) or self.keys == 0
            keys.append(f"key {self.keys}")
        worker = data.draw(st.sampled_from([None, *self.world.workers]))
        lost = data.draw(st.integers(0, 9)) == 9
        by = Handed(worker, self.world.caller_fields(worker), answer_lost=lost) if worker else NOBODY
        self.world.submit(scenario.plan, priorities, keys, by, [data.draw(st.sampled_from(TIMES)) for _ in keys])

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

    @precondition(lambda self: 0 < len(self.model.tasks) < TASKS + 2)
    @rule(data=st.data())
    def rerun(self, data: st.DataObject) -> None:
        rerun(self.world, data.draw(st.sampled_from(sorted(to_rerun(self.model), key=_key))))

    @precondition(lambda self: self.model.tasks)
    @rule(data=st.data(), scope=st.sampled_from(["namespace", "template", "step", "task"]))
    def pause(self, data: st.DataObject, scope: str) -> None:
        step = data.draw(st.sampled_from(self.model.steps()))
        (pause,) = [pause for pause in pauses_of(step) if pause.scope == scope]
        if scope != "task" or step.task.state == "open":
            self.world.pause(pause)

    @precondition(lambda self: self.model.pauses)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        self.world.resume(data.draw(st.sampled_from(sorted(self.model.pauses, key=str))))

    # --- workers -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.mail.hints)
    @rule(data=st.data(), n=st.integers(0, 2), answer_lost=st.sampled_from([False] * 9 + [True]))
    def claim(self, data: st.DataObject, n: int, answer_lost: bool) -> None:
        worker = self.world.workers[n]
        hints = data.draw(st.permutations(self.world.mail.hints))[: data.draw(st.integers(1, 4))]
        self.world.faults["answer lost"] += answer_lost
        self.world.claim(worker, hints, answer_lost=answer_lost)

    @precondition(lambda self: self.world.mail.hints)
    @rule(data=st.data(), n=st.integers(0, 2))
    def fail_over(self, data: st.DataObject, n: int) -> None:
        """The worker believes in claims whose commit was lost; another one gets the same tokens."""
        hints = data.draw(st.permutations(self.world.mail.hints))[: data.draw(st.integers(1, 4))]
        lose_claim(self.world, self.world.workers[n], hints)

    @precondition(lambda self: self.world.mail.hints or self.model.held())
    @rule(data=st.data(), n=st.integers(0, 2), queued=st.sampled_from([False, False, True]))
    def work(self, data: st.DataObject, n: int, queued: bool) -> None:
        """The worker takes what it finds first and brings what it has."""
        world, worker = self.world, self.world.workers[n]
        take_first(world, worker)
        attempts = [attempt for attempt in worker.running if not attempt.parked]
        for attempt in attempts:
            self.end(attempt, data)
        if attempts:
            (world.park if queued else world.finish)(worker, attempts)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), how=st.sampled_from(["inline"] * 4 + ["queued"] * 3 + ["inline, lost", "queued, lost"]))
    def finish(self, data: st.DataObject, how: str) -> None:
        worker = data.draw(st.sampled_from([worker for worker in self.world.workers if worker.running]))
        attempts = data.draw(st.lists(st.sampled_from(worker.running), min_size=1, max_size=4, unique=True))
        if data.draw(st.integers(0, 3)) == 0:
            attempts = self._brought_again(data, attempts) + attempts
        for attempt in attempts:
            self.end(attempt, data)
        lost = how.endswith("lost")
        self.world.faults["answer lost"] += lost
        queued = how.startswith("queued")
        mine = [a for a in attempts if a.parked == queued or (a in worker.running and not a.parked)]
        (self.world.park if queued else self.world.finish)(worker, mine, answer_lost=lost)

    def _brought_again(self, data: st.DataObject, attempts: list[Attempt]) -> list[Attempt]:
        """Earlier attempts of the same worker in the same batch, of the same steps where there are any."""
        spent = [attempt for _, attempt in self.world.spent if attempt.identity == attempts[0].identity]
        same = [attempt for attempt in spent if attempt.key in {other.key for other in attempts}]
        return data.draw(st.lists(st.sampled_from(same or spent), max_size=2)) if spent else []

    @precondition(lambda self: self.world.spent)
    @rule(data=st.data(), queued=st.booleans())
    def bring_again(self, data: st.DataObject, queued: bool) -> None:
        """A result that was stored already, or of a worker that had died; best while another attempt runs."""
        spent = self.world.spent
        busy = [pair for pair in spent if self.model.step(pair[1].key).state == RUNS]
        worker, attempt = data.draw(st.sampled_from(busy or spent))
        attempt.parked = attempt.parked if attempt.ending else queued
        self.end(attempt, data)
        (self.world.park if attempt.parked else self.world.finish)(worker, [attempt])

    @precondition(lambda self: self.running())
    @rule(data=st.data(), delay_ms=st.sampled_from([None, None, 0, 2000]))
    def give_back(self, data: st.DataObject, delay_ms: int | None) -> None:
        worker = data.draw(st.sampled_from([worker for worker in self.world.workers if worker.running]))
        attempts = data.draw(st.lists(st.sampled_from(worker.running), min_size=1, max_size=2, unique=True))
        self.world.release(worker, attempts, delay_ms)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), cursor=st.integers(0, 9))
    def checkpoint(self, data: st.DataObject, cursor: int) -> None:
        attempts = [attempt for _, attempt in self.running()]
        attempts += [a for _, a in self.world.spent if self.model.step(a.key).state == RUNS]
        self.world.checkpoint(data.draw(st.sampled_from(attempts)), cursor)

    @precondition(lambda self: self.model.tasks)
    @rule(data=st.data(), n=st.integers(0, 2))
    def lack_handler(self, data: st.DataObject, n: int) -> None:
        """The worker cannot resolve some handler; it puts such steps back when it meets them."""
        steps = list(dict.fromkeys(f"{step.task.template}:{step.plan.ordinal}" for step in self.model.steps()))
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

    @precondition(lambda self: self.model.due() or expired(self.model))
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
        self.world.rob(data.draw(st.sampled_from(self.world.mail.hints)), what)

    @precondition(lambda self: self.world.mail.results)
    @rule(data=st.data(), lost=st.booleans())
    def result_message_goes_astray(self, data: st.DataObject, lost: bool) -> None:
        self.world.rob_results(data.draw(st.sampled_from(self.world.mail.results)), lost=lost)

    @precondition(lambda self: self.running())
    @rule(n=st.integers(0, 2))
    def die(self, n: int) -> None:
        self.world.faults["died"] += 1
        self.world.die(self.world.workers[n])

    @precondition(lambda self: self.running())
    @rule(n=st.integers(0, 2))
    def fall_silent(self, n: int) -> None:
        """The worker goes on, its beats do not arrive."""
        self.world.faults["silent"] += 1
        self.world.workers[n].alive = False

    @precondition(lambda self: rivals(self.world))
    @rule(data=st.data(), n=st.integers(0, 2))
    def race(self, data: st.DataObject, n: int) -> None:
        held = hold_both(self.world, self.world.workers[n], data.draw(st.sampled_from(rivals(self.world))))
        if len(held) == 2:
            for _, attempt in held:
                self.end(attempt, data)
            mine, other = data.draw(st.permutations(held))
            self.world.race(mine, other)

    @precondition(lambda self: self.model.tasks)
    @rule(data=st.data(), n=st.integers(0, 2), kind=st.sampled_from(DEEDS))
    def meanwhile(self, data: st.DataObject, n: int, kind: str) -> None:
        """Between a look and what follows it somebody cancels, pauses, resumes, repairs, promotes or gives back."""
        world, moment = self.world, data.draw(st.sampled_from(moments(self.world)))
        action, tasks = self._looking(data, n, moment)
        step = data.draw(st.sampled_from([step for task in tasks for step in task.steps.values()]))
        paused = sorted(self.model.pauses, key=str) if kind == "resume" else []
        pause = data.draw(st.sampled_from(paused or pauses_of(step)))
        came = world.interrupt(moment.split()[0], deed(world, kind, step, pause, self.good(step).result), action)
        world.between[kind] += came

    def _looking(self, data: st.DataObject, n: int, moment: str) -> tuple[Callable[[], object], list[Task]]:
        """An action that begins with this look, and the tasks that it is about."""
        world = self.world
        if moment == "graph":
            worker, attempt = data.draw(st.sampled_from(deciding(world)))
            self.end(attempt, data)
            return lambda: world.finish(worker, [attempt]), [self.model.tasks[attempt.key[0]]]
        parked = list({step.task.id: step.task for step in self.model.steps(*PARKED)}.values())
        if moment == "sweep":
            return lambda: world.sweep(world.workers[n]), parked or list(self.model.tasks.values())
        return lambda: world.orchestrate(list(world.mail.results)), parked or list(self.model.tasks.values())

    @precondition(lambda self: self.running("inline"))
    @rule(data=st.data(), n=st.integers(0, 2))
    def result_meets_sweep(self, data: st.DataObject, n: int) -> None:
        worker, attempt = data.draw(st.sampled_from(self.running("inline")))
        self.end(attempt, data)
        self.world.meet(worker, attempt, self.world.workers[n])

    # --- endings -----------------------------------------------------------------------------------------------------

    def good(self, step: Step) -> Ending:
        """The result that lets the task go on."""
        chosen = self.results[step.task.plan.hash].results
        return Ending(chosen[step.plan.name] if step.plan.type in CHOOSERS else {"value": f"{step.name} {step.token}"})

    def endings(self, step: Step) -> st.SearchStrategy[Ending]:
        good = st.just(self.good(step))
        silent = st.just(Ending(NO_OUTCOME)) if step.plan.type in CHOOSERS else good
        return st.integers(0, 9).flatmap(lambda n: good if n < 6 else FAILURES if n < 9 else silent)

    def end(self, attempt: Attempt, data: st.DataObject) -> None:
        """Its handler returns; what it came to never changes afterwards."""
        attempt.ending = attempt.ending or data.draw(self.endings(self.model.step(attempt.key)))

    def settled(self, step: Step, random: Random) -> Ending:
        """At the end handlers fail less often."""
        good = self.good(step)
        bad = [Ending(failed=True), Ending(failed=True, retryable=False)]
        return random.choice([*[good] * 30, *bad, Ending(NO_OUTCOME) if step.plan.type in CHOOSERS else good])

    def running(self, path: str | None = None) -> list[tuple[Worker, Attempt]]:
        """What the workers hold; only what is not to be parked with `path` inline."""
        held = [(worker, attempt) for worker in self.world.workers for attempt in worker.running]
        return [(worker, attempt) for worker, attempt in held if path is None or not attempt.parked]

    def teardown(self) -> None:
        """No more misfortune: every task must come to its end."""
        if not self.world.sound:
            return
        Settling(self.world, self.random, self.settled).run()
        assert not self.model.steps("in_progress", "enqueued", "waiting_for_retry", *PARKED)
        assert all(task.state != "open" for task in self.model.tasks.values())
        assert all(step.accepted <= 1 for step in self.model.steps())
        if not +self.world.faults:
            assert not +self.world.repaired, self.world.repaired
        self.counts.update(self._counted())

    def _counted(self) -> Counter[str]:
        """What this example was about, for whoever wonders whether the machine reaches what it should."""
        steps, tasks = self.model.steps(), self.model.tasks.values()
        found = Counter(
            {f"task {state}": sum(t.state == state for t in tasks) for state in ("complete", "error", "cancelled")}
        )
        found |= Counter({f"fault: {name}": number for name, number in self.world.faults.items()})
        found |= Counter({f"repaired: {name}": number for name, number in self.world.repaired.items()})
        found |= Counter({f"meanwhile: {name}": number for name, number in self.world.between.items()})
        found |= Counter(self.world.verdicts)
        created = [step for step in steps if not step.plan.static]
        return found | Counter(
            examples=1, comparisons=self.world.comparisons, steps=len(steps), created=len(created),
            claims=sum(step.claims for step in steps),
            delayed=sum(bool(step.plan.delay_seconds) and step.claims > 0 for step in steps),
            repeated=sum(s.claims > 1 for s in steps), resolved=sum(s.state == "resolved_manually" for s in steps),
            deep=sum(step.plan.type in CHOOSERS for step in created), failed=sum(step.failures for step in steps),
        )  # fmt: skip


def _key(step: Step) -> tuple[str, str, bool]:
    return (*step.key, step.state in ENDED)


REACHED = {
    "task complete",
    "task error",
    "task cancelled",
    "created",
    "repeated",
    "delayed",
    "resolved",
    "failed",
    "reused",
    "comparisons",
}
"""What the examples are about among them: a machine that reaches nothing proves nothing."""


def drive(world: World, name: str, profile: settings) -> dict[str, int]:
    """Run the machine; what its examples were about."""
    counts: Counter[str] = Counter()
    machine = type(name, (Machine,), {"world": world, "counts": counts})
    run_state_machine_as_test(machine, settings=profile)
    return dict(sorted(counts.items()))


def test_the_engine_does_what_the_model_says(module_database_url: str) -> None:
    world = World(module_database_url, note)
    try:
        counts = drive(world, "EngineMachine", PROFILE)
    finally:
        world.close()
    print(counts)
    assert {name for name, number in counts.items() if number} >= REACHED


@pytest.mark.parametrize("backend", [brokers.on(name) for name in brokers.ENGINE_BACKENDS])
def test_the_engine_does_what_the_model_says_whoever_carries_its_hints(module_database_url: str, backend: str) -> None:
    world = World(module_database_url, note, backend)
    try:
        counts = drive(world, f"EngineOn{backend.title()}", CARRIED)
    finally:
        world.close()
    assert counts["comparisons"] > 0
    assert counts["task complete"] > 0
