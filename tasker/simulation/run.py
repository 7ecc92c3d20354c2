"""One simulated task: the loop over its attempts and timers, with the engine's own decisions.

Growth, retries, paths of states and the state of the task are the engine's (`tasker.engine`); which steps become ready,
which its SQL decides, is decided here once more, and a property test holds both equal.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tasker.engine.expansion.choices import DEFAULT_LIMITS, ExpansionLimits
from tasker.engine.expansion.failures import plan_failure
from tasker.engine.expansion.graph import ExistingStep, NewStep
from tasker.engine.expansion.outcomes import OutcomeError
from tasker.engine.expansion.planner import expand
from tasker.engine.retry import Fail, classified, decide_failure
from tasker.engine.states.step import StepState
from tasker.engine.states.step_changes import CHANGES, PLACES, StepPath
from tasker.engine.states.task import TERMINAL, StepCounts, TaskState, task_path, task_target
from tasker.errors import UsageError
from tasker.handlers.claims import Failure, RetryTimes
from tasker.simulation.gates import Gates
from tasker.simulation.phases import Phases
from tasker.simulation.steps import DONE, Again, AttemptOutcome, SimulatedFailure, SimulatedStep, Waiting
from tasker.simulation.times import start_of, wait_ends
from tasker.template.failure_words import SKIPPED
from tasker.template.plan import Plan

_S, _T = StepState, TaskState
_FINISHED = DONE | {_S.ERROR, _S.CANCELLED}
_CLAIM = PLACES["claim"].by_state[_S.PENDING]
MOST_ATTEMPTS = 1_000_000
"""Attempts of one run, after which it is stopped: a mock asks to be called again for ever."""


Call = Callable[["SimulatedTask", SimulatedStep], AttemptOutcome | None]
"""Calls the handler of a step, or what stands for it; None: the step waits for an event that never comes."""


class SimulatedTask:
    """A task of a compiled plan on a virtual clock.

    `call` gives each attempt its outcome. `random` (0.0 to 1.0) places each retry's delay within its jitter. `slots`
    is the number of attempts that run at the same time.
    """

    def __init__(
        self,
        plan: Plan,
        values: Mapping[str, Any],
        call: Call,
        *,
        at: datetime,
        random: Callable[[], float] = lambda: 0.5,
        slots: int | None = None,
        limits: ExpansionLimits = DEFAULT_LIMITS,
        gates: Gates | None = None,
    ) -> None:
        self.plan, self.values, self.at = plan, values, at
        self.steps: dict[str, SimulatedStep] = {}
        self.state, self.path, self.now = _T.PENDING, [_T.PENDING], 0
        self.phases, self.warnings = Phases(plan, self.steps), list[str]()
        self._call, self._random, self._limits = call, random, limits
        self._free = slots if slots is not None else MOST_ATTEMPTS
        self._of_template: dict[str, list[SimulatedStep]] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._events_made = self._attempts = 0
        self._ready: deque[SimulatedStep] = deque()
        self._held: set[str] = set()
        self._gates, self._rate_times = gates, set[int]()
        self._done = self._failed = self._active = self._retrying = 0

    def run(self) -> None:
        """Run the task until it has ended, or until nothing can happen any more."""
        for step in self.plan.steps:
            if step.static:
                above = tuple(name for name in step.depends_on if self.plan.by_name[name].static)
                self._add(NewStep(step.name, step.name, above))
        if self.plan.deadline_seconds is not None:
            self._at(round(self.plan.deadline_seconds * 1000), self._deadline_passed)
        if self.plan.expires_in_seconds is not None:
            self._at(round(self.plan.expires_in_seconds * 1000), self._expire)
        self._evaluate(self._place([step for step in self.steps.values() if not step.unmet]))
        self._start()
        while self._events and self.state not in TERMINAL:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
            self._start()

    def results_above(self, step: SimulatedStep) -> dict[str, Any]:
        """Return the results of the steps above, by name, as the handler of the step reads them."""
        above = self.plan.above.of(step.plan.name)
        found = (other for name in above for other in self._of_template.get(name, ()))
        return {other.name: other.result for other in found if other.state in DONE}

    def instances(self, template_step: str) -> Sequence[SimulatedStep]:
        """Return the steps that were made from a step of the template."""
        return self._of_template.get(template_step, ())

    def _add(self, new: NewStep) -> SimulatedStep:
        plan = self.plan.by_name[new.template_step]
        step = self.steps[new.name] = SimulatedStep(new.name, plan, tuple(new.parents), new.inputs)
        self._of_template.setdefault(new.template_step, []).append(step)
        for parent in step.parents:
            above = self.steps[parent]
            above.children.append(step)
            step.unmet += not above.is_satisfied
        return step

    def _at(self, time: int, happen: Callable[[], None]) -> None:
        self._events_made += 1
        heapq.heappush(self._events, (time, self._events_made, happen))

    @property
    def left_ms(self) -> int | None:
        """Time until the deadline of the task; None without one."""
        deadline = self.plan.deadline_seconds
        return None if deadline is None or self.phases.phase is not None else round(deadline * 1000) - self.now

    def _place(self, steps: Iterable[SimulatedStep]) -> int:
        """Make steps ready to run, each once its time has come; return how many of them were placed."""
        placed = 0
        for step in steps:
            placed += 1
            step.ready_ms = self.now if step.ready_ms is None else step.ready_ms
            begins = start_of(step.plan, self)
            if isinstance(begins, Failure):
                self._fail_unstarted(step, begins)
            elif begins > self.now:
                self._held.add(step.name)
                self._at(begins, lambda step=step: self._begin(step))  # type: ignore[misc]
            else:
                self._go(step)
        return placed

    def _begin(self, step: SimulatedStep) -> None:
        if step.state is not _S.PENDING:
            return
        self._held.discard(step.name)
        self._go(step)
        self._evaluate(1)

    def _go(self, step: SimulatedStep) -> None:
        """Queue a step for its next attempt; a step that waits begins to wait, without a slot."""
        self._active += 1
        if step.plan.wait is None:
            self._ready.append(step)
            return
        self._begin_attempt(step, PLACES["suspend"].by_state[_S.PENDING])
        began = self.at + timedelta(milliseconds=self.now)
        alone = not step.plan.is_ended_by_others
        ends = wait_ends(step.plan.wait, began, self.values, self.steps) if alone else self._call(self, step)
        if ends is None:
            return
        number = step.number
        self._at(max(ends.takes_ms, 0) + self.now, lambda: self._end(step, ends, number, slot=False))

    def _fail_unstarted(self, step: SimulatedStep, failure: Failure) -> None:
        def fail() -> None:
            self._held.discard(step.name)
            step.failures.append(SimulatedFailure(step.attempts, failure, None, failure.message))
            self._walk(step, CHANGES["fail"].by_state[_S.PENDING])
            self._after_failure(step)

        self._held.add(step.name)
        self._at(self.now, fail)

    def _start(self) -> None:
        refused: list[SimulatedStep] = []
        while self._ready and self._free > 0 and self.state not in TERMINAL:
            step = self._ready.popleft()
            if step.state is not _S.PENDING:
                continue
            if self._gates is not None and not self._may_begin(step, self._gates, refused):
                continue
            self._free -= 1
            self._begin_attempt(step, _CLAIM)
            outcome = self._call(self, step)
            assert outcome is not None
            number = step.number
            self._at(
                self.now + outcome.takes_ms,
                lambda step=step, outcome=outcome, number=number: self._end(step, outcome, number),  # type: ignore[misc]
            )

        self._ready.extendleft(reversed(refused))

    def _may_begin(self, step: SimulatedStep, gates: Gates, refused: list[SimulatedStep]) -> bool:
        """Return whether limits and circuit breakers let a step begin; `refused` gets it if it stays ready."""
        refusal = gates.refusal(step, self.steps, self.now)
        if refusal is None:
            return True
        if refusal.failure is not None:
            self._active -= 1
            self._fail_unstarted(step, refusal.failure)
            return False
        if refusal.deferred and refusal.until_ms is not None:
            self._walk(step, _CLAIM)
            self._wait(step, "defer", refusal.until_ms - self.now)
            self._evaluate(0)
            return False
        refused.append(step)
        if refusal.until_ms is not None and refusal.until_ms not in self._rate_times:
            self._rate_times.add(refusal.until_ms)
            self._at(refusal.until_ms, lambda: None)
        return False

    def _begin_attempt(self, step: SimulatedStep, path: StepPath) -> None:
        self._attempts += 1
        if self._attempts > MOST_ATTEMPTS:
            raise UsageError(f"the run was stopped after {MOST_ATTEMPTS} attempts; the last one was of {step.name}")
        self._walk(step, path)
        step.attempts, step.calls, step.number = step.attempts + 1, step.calls + 1, step.number + 1
        if step.started_ms is None:
            step.started_ms, step.first_attempt = self.now, self._attempts

    def _end(self, step: SimulatedStep, outcome: AttemptOutcome, number: int, *, slot: bool = True) -> None:
        self._free += slot
        if self._gates is not None and slot:
            self._gates.ended(step, outcome.value, self.now)
        if step.state is not _S.IN_PROGRESS or step.number != number:
            return
        step.busy_ms += outcome.takes_ms if slot else 0
        value, left = outcome.value, self.left_ms
        if isinstance(value, Again) and left is not None and value.delay_ms >= left:
            value = Failure("it would be called again after the deadline of the task", "deadline_too_near", False)
        if isinstance(value, Again):
            value = self._snooze(step, value)
        if isinstance(value, Waiting):
            return self._suspend(step, value)
        if value is None:
            return
        if isinstance(value, Failure):
            self._fail(step, value)
        else:
            self._complete(step, value)

    def _snooze(self, step: SimulatedStep, again: Again) -> Failure | None:
        if step.snoozes >= again.limit:
            message = f"the handler asked {step.snoozes + 1} times to be called again, and its limit is {again.limit}"
            return Failure(message, "snoozed_too_often", retryable=False)
        step.snooze(again)
        self._wait(step, "snooze", again.delay_ms)
        self._evaluate(0)
        return None

    def _suspend(self, step: SimulatedStep, waiting: Waiting) -> None:
        """Let the handler of a step wait for its event, without a slot."""
        number = step.number
        step.suspend(waiting)
        self._evaluate(1)
        if waiting.ends_ms is not None:
            self._at(self.now + waiting.ends_ms, lambda: self._resume(step, waiting, number))

    def _resume(self, step: SimulatedStep, waiting: Waiting, number: int) -> None:
        if step.state is not _S.IN_PROGRESS or step.number != number:
            return
        if waiting.event is None and waiting.suspension.on_timeout == "fail":
            return self._fail(step, Failure(f"no event {waiting.suspension.event} came", "wait_timed_out", False))
        step.resume(waiting)
        self._walk(step, CHANGES["resume"].by_state[_S.IN_PROGRESS])
        self._ready.append(step)
        self._evaluate(1)

    def _complete(self, step: SimulatedStep, result: Any) -> None:
        new: tuple[NewStep, ...] = ()
        if step.plan.type.expands:
            try:
                grown = expand(self.plan, step.name, result, self.existing(), self._limits)
            except OutcomeError as error:
                return self._fail(step, Failure(str(error), "invalid_outcome", retryable=False))
            new = grown.steps
            self.warnings += grown.warnings
        made = [self._add(each) for each in new]  # the step is not done yet: it counts as an unmet parent of them
        self._walk(step, CHANGES["ok"].by_state[_S.IN_PROGRESS])
        step.result, step.ended_ms = result, self.now
        self._active -= 1
        self._done += 1
        ready = [each for each in made if not each.unmet]
        self._evaluate(self._place([*ready, *self._counted_down(step.children)]))
        return None

    def _fail(self, step: SimulatedStep, failure: Failure) -> None:
        failure = classified(failure, step.plan.retry)
        ran = None if step.started_ms is None else self.now - step.started_ms
        times = RetryTimes(self.left_ms, ran)
        decision = decide_failure(step.plan.retry, step.attempts, failure, self._random(), times)
        if isinstance(decision, Fail):
            step.failures.append(SimulatedFailure(step.attempts, failure, None, decision.message))
            self._walk(step, CHANGES["fail"].by_state[_S.IN_PROGRESS])
            step.ended_ms = self.now
            self._active -= 1
            return self._after_failure(step)
        else:
            step.failures.append(SimulatedFailure(step.attempts, failure, decision.delay_ms, None))
            self._wait(step, "retry", decision.delay_ms)
        self._evaluate(0)

    def existing(self) -> list[ExistingStep]:
        """Return the steps as planners read them."""
        return [
            ExistingStep(s.name, s.plan.name, not s.is_satisfied, s.settled, s.state is _S.PENDING)
            for s in self.steps.values()
        ]

    def _after_failure(self, step: SimulatedStep) -> None:
        """End the step by its word: the task fails, or goes on without it."""
        parents = {other.name: other.parents for other in self.steps.values()}
        plan = plan_failure(self.plan, step.name, self.existing(), parents)
        if plan.settled is None:
            self._failed += 1
            return self._evaluate(0)
        made = [self._add(each) for each in plan.steps]  # before the step is settled: it is an unmet parent of them
        for new, below in ((each, self.steps[name]) for each in plan.steps for name in each.joins):
            below.parents, below.unmet = (*below.parents, new.name), below.unmet + 1
            self.steps[new.name].children.append(below)
        skipped = [self.steps[name] for name in plan.skipped]
        for other in skipped:
            self._walk(other, CHANGES["skip"].by_state[_S.PENDING])
            other.settled, other.ended_ms = SKIPPED, self.now
        step.settled = plan.settled
        self._done += 1 + len(skipped)
        ready = self._counted_down([child for gone in (step, *skipped) for child in gone.children])
        return self._evaluate(self._place([*(each for each in made if not each.unmet and each not in ready), *ready]))

    def _counted_down(self, children: Iterable[SimulatedStep]) -> list[SimulatedStep]:
        """Count down the unmet parents of these steps; return those that are ready now."""
        ready = []
        for child in children:
            child.unmet -= 1
            if not child.unmet and child.state is _S.PENDING:
                ready.append(child)
        return ready

    def _wait(self, step: SimulatedStep, kind: str, delay_ms: int) -> None:
        self._walk(step, CHANGES[kind].by_state[_S.IN_PROGRESS])
        self._active -= 1
        self._retrying += 1
        self._at(self.now + delay_ms, lambda: self._due(step))

    def _due(self, step: SimulatedStep) -> None:
        if step.state is not _S.WAITING_FOR_RETRY:
            return
        self._walk(step, CHANGES["promote"].by_state[_S.WAITING_FOR_RETRY])
        self._retrying -= 1
        self._active += 1
        self._ready.append(step)
        self._evaluate(1)

    def _deadline_passed(self) -> None:
        if self.phases.phase is not None:
            return
        failure = Failure("the deadline of the task has passed", "deadline_exceeded", retryable=False)
        for step in list(self.steps.values()):
            if step.state in _FINISHED or (step.state is _S.PENDING and step.unmet):
                continue
            if step.state is _S.WAITING_FOR_RETRY:
                self._retrying -= 1
            elif step.name in self._held:
                self._held.discard(step.name)
            else:
                self._active -= 1
            step.failures.append(SimulatedFailure(step.attempts, failure, None, failure.message))
            self._walk(step, CHANGES["expire"].by_state[step.state])
            step.ended_ms = self.now
            self._failed += 1
        self._evaluate(0)

    def _expire(self) -> None:
        """Cancel the task if nothing of it has begun."""
        if any(step.started_ms is not None for step in self.steps.values()):
            return
        for step in self.steps.values():
            if step.state not in _FINISHED:
                self._walk(step, CHANGES["cancel"].by_state[step.state])
                self._failed += 1
        self._active, self.phases.cancelled = 0, True
        self._held.clear()
        self._evaluate(0)

    def _walk(self, step: SimulatedStep, path: StepPath) -> None:
        step.path += path[1:]
        step.state = path[-1]

    def _evaluate(self, started: int) -> None:
        held, failed, active = len(self._held), self._failed, self._active
        counts = StepCounts(len(self.steps), self._done, failed, 0, active, self._retrying, held)
        target = task_target(self.state, counts, started)
        new = self.phases.next(target) if target in TERMINAL else None
        if target in TERMINAL:
            target = self.phases.end(target) if new is None else _T.WAITING_FOR_DEPENDENCIES
        self.path += task_path(self.state, target) or ()
        self.state = self.path[-1]
        if new is not None:
            made = [self._add(each) for each in new]
            self._evaluate(self._place([step for step in made if not step.unmet]))
