"""What a task came to, compared with the case that it came from.

Lost workers explain only what follows from them: a step may have taken one attempt more for each that was lost, and may
have ended in `error` when its last attempt was lost and there was none left. What is below such a step has not begun;
everything else is as the case says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasker.template.plan import Plan, StepPlan
from tests.acceptance.examples.workflow_case import Case

LOST = ("worker_lost", "checkpoint_save_failed")
"""Failures that are not the handler's: its worker was lost, or the database that takes its checkpoints."""


@dataclass
class Found:
    """A task as the database has it: its state, and by step name state, attempts, result, failures, identifier."""

    state: str
    states: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def telling(self) -> dict[str, Any]:
        """The results of handlers that tell which step they ran as, and which values they read."""
        return {step: each for step, each in self.results.items() if isinstance(each, dict) and "read" in each}

    @property
    def lost(self) -> Counter[str]:
        """How many attempts of each step were lost."""
        return Counter({step: sum(map(is_lost, all_)) for step, all_ in self.failures.items()})


def is_lost(error: Mapping[str, Any]) -> bool:
    """True for a failure that is not the handler's."""
    return error["error_type"] in LOST


def complaints(case: Case, plan: Plan, found: Found) -> Iterator[str]:
    """What is not as the case says, and is not explained by a lost worker either."""
    ended = {step for step in found.states if _was_ended_by_a_loss(plan, found, step)}
    expected = _expected(case, plan, ended, found)
    status = "error" if "error" in expected.values() else "complete"
    if (found.state, found.states) != (status, expected):
        yield f"{case.id}: {found.state} {found.states}, expected {status} {expected}"
    yield from _wrong_results(case, found)
    yield from _exchanged(case, found)
    for step in expected.keys() & found.states:
        declared = 0 if expected[step] == "pending" else case.attempts.get(step, 1)
        yield from _wrong_attempts(case, step, declared, found, 0 if step in ended else declared)
    yield from _wrong_failure(case, found)


def _was_ended_by_a_loss(plan: Plan, found: Found, step: str) -> bool:
    """In error, the last attempt was lost, and there was none left or could be none."""
    failures, planned = found.failures[step], _planned(plan, step)
    if found.states[step] != "error" or not failures or not is_lost(failures[-1]):
        return False
    only_once = planned.on_worker_lost == "fail" and failures[-1]["error_type"] == "worker_lost"
    return only_once or found.attempts[step] >= planned.retry.max_attempts


def _planned(plan: Plan, step: str) -> StepPlan:
    """The step of the template; batch workers bear its name with a number."""
    return plan.by_name.get(step) or plan.by_name[step.rpartition("_")[0]]


def _expected(case: Case, plan: Plan, ended: set[str], found: Found) -> dict[str, str]:
    """The state of every step. Those below a step that was lost for good wait, or have not been created."""
    below = {name for step in ended for name in plan.below.of(_planned(plan, step).name)}
    waiting = [step for step in case.steps if _planned(plan, step).name in below]
    missing = {step for step in waiting if not _planned(plan, step).static} - found.states.keys()
    states = {step: case.state_of(step) for step in case.steps if step not in missing}
    return states | {step: "pending" for step in waiting if step not in missing} | dict.fromkeys(ended, "error")


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


def _exchanged(case: Case, found: Found) -> Iterator[str]:
    """Where handlers tell what they are and read: each result is its own step's, and what is stored was read."""
    telling = found.telling
    for step, result in telling.items():
        if result["step"] != found.ids[step]:
            yield f"{case.id}: {step} is {found.ids[step]} and has the result of {result['step']}"
        for above, value in result["read"].items():
            if above not in telling or telling[above]["value"] != value:
                yield f"{case.id}: {step} has read {value} of {above}, whose result is {found.results.get(above)}"


def _wrong_attempts(case: Case, step: str, declared: int, found: Found, least: int) -> Iterator[str]:
    """Each attempt ended: in a failure that is kept, or in the result. There are as many as declared, and the lost."""
    attempts, lost = found.attempts[step], found.lost[step]
    kept = len(found.failures[step]) + (found.states[step] == "complete")
    if attempts != kept:
        yield f"{case.id}: {step} took {attempts} attempts, and {kept} of them ended"
    if not least <= attempts <= declared + lost:
        yield f"{case.id}: {step} took {attempts} attempts, {lost} lost, expected {declared}"


def _wrong_failure(case: Case, found: Found) -> Iterator[str]:
    """The step that is to fail did so by what the case says, unless its last attempt was lost."""
    failures = found.failures.get(case.failed.step, []) if case.failed else []
    if case.failed and failures and not is_lost(failures[-1]):
        error = failures[-1]
        if (error["error_type"], error["retryable"]) != (case.failed.error_type, case.failed.retryable):
            yield f"{case.id}: {case.failed.step} failed with {error}"
