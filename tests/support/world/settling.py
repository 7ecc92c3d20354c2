"""The end of a story in the world: misfortune is over, everything is worked off until every task has ended."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.support.model.expiry import expired
from tests.support.model.graph import CHOOSERS
from tests.support.model.parts import QUEUED, RUNS, Ending, Step
from tests.support.world.parts import Attempt, Worker
from tests.support.world.world import World

TURNS = 400


def rivals(world: World) -> list[tuple[Step, Step]]:
    """Pairs of decision or batchable steps of one task that could decide at the same time."""
    hinted = {world.names.get(hint["step"]) for hint in world.mail.hints}
    held = {attempt.key for worker in world.workers for attempt in worker.running if not attempt.parked}
    choosers = [step for step in world.model.steps(RUNS, QUEUED) if step.plan.type in CHOOSERS]
    able = [step for step in choosers if step.key in (held if step.state == RUNS else hinted)]
    return [(a, b) for a in able for b in able if a.task is b.task and a.name < b.name]


def hold_both(world: World, worker: Worker, pair: tuple[Step, Step]) -> list[tuple[Worker, Attempt]]:
    """The attempts of both steps, claimed where they are still in the queue; fewer when that does not succeed."""
    hints = [hint for hint in world.mail.hints if world.names.get(hint["step"]) in {step.key for step in pair}]
    if hints:
        world.claim(worker, hints)
    held = {attempt.key: (holder, attempt) for holder in world.workers for attempt in holder.running}
    return [held[step.key] for step in pair if step.key in held and step.state == RUNS]


def take_first(world: World, worker: Worker) -> None:
    """The worker claims what it finds first: of the hints, or, without any, of what is held."""
    if world.mail.hints:
        world.claim(worker, world.mail.hints[: max(1, worker.slots - len(worker.running))])
    else:
        world.release_held(worker, list(world.namespaces.values()))


class Settling:
    """Brings every task to its end. `ending_of` says what an attempt comes to; all else is drawn from `random`."""

    def __init__(self, world: World, random: Random, ending_of: Callable[[Step, Random], Ending]) -> None:
        self.world, self.random, self.ending_of = world, random, ending_of

    def run(self) -> None:
        """Raises `AssertionError` when a task does not end."""
        for worker in self.world.workers:
            self._recover(worker)
        for pause in sorted(self.world.model.pauses, key=str):
            self.world.resume(pause)
        for turn in range(TURNS):
            if not any(task.state == "open" for task in self.world.model.tasks.values()):
                return
            for worker in self.random.sample(self.world.workers, len(self.world.workers)):
                self._work(worker)
            if self.world.mail.results:
                self.world.orchestrate(list(self.world.mail.results))
            self.world.sweep(self.world.workers[turn % len(self.world.workers)])
            if not self.world.mail.hints and not any(worker.running for worker in self.world.workers):
                self.world.tick(self._pause())
        raise AssertionError("the tasks never come to an end")

    def _recover(self, worker: Worker) -> None:
        """A worker that has lost its lease ends, another one begins."""
        worker.unserved, worker.alive = set(), True
        if self.world.model.leases[worker.identity] < self.world.model.now:
            self.world.die(worker)

    def _work(self, worker: Worker) -> None:
        world, random = self.world, self.random
        world.reconcile(worker)
        if world.model.due() or expired(world.model):
            world.promote(worker)
        if world.model.held():
            world.release_held(worker, list(world.namespaces.values()))
        if (pairs := rivals(world)) and random.random() < 0.5:
            self._race(worker, random.choice(pairs))
        if world.mail.hints:
            world.claim(worker, random.sample(world.mail.hints, min(worker.slots, len(world.mail.hints))))
        self._bring(worker)
        if world.spent and random.random() < 0.1:
            self._bring_late(*random.choice(world.spent))

    def _bring_late(self, worker: Worker, attempt: Attempt) -> None:
        """The result of a worker that was given up, or one that was stored already."""
        attempt.ending = attempt.ending or self.ending_of(self.world.model.step(attempt.key), self.random)
        (self.world.park if attempt.parked else self.world.finish)(worker, [attempt])

    def _bring(self, worker: Worker) -> None:
        """What it holds: over the path that was begun, or over either one."""
        attempts = list(worker.running)
        for attempt in attempts:
            attempt.ending = attempt.ending or self.ending_of(self.world.model.step(attempt.key), self.random)
        if self.random.random() < 0.3:
            self.world.park(worker, attempts)
        else:
            self.world.finish(worker, [attempt for attempt in attempts if not attempt.parked])
            self.world.park(worker, [attempt for attempt in attempts if attempt.parked])

    def _race(self, worker: Worker, pair: tuple[Step, Step]) -> None:
        held = hold_both(self.world, worker, pair)
        if len(held) == 2:
            for _, attempt in held:
                attempt.ending = attempt.ending or self.ending_of(self.world.model.step(attempt.key), self.random)
            self.world.race(*self.random.sample(held, 2))

    def _pause(self) -> int:
        """Until the next step is due; otherwise long enough for the sweep to miss something."""
        waiting = [step.due for step in self.world.model.waiting() if step.due is not None]
        return max(1, min(waiting) - self.world.model.now) if waiting else 6_000
