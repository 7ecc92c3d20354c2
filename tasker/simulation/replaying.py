"""Today's handlers on the recorded inputs of a task that ran, attempt by attempt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final, NamedTuple

from tasker.dataclasses import dataclass
from tasker.engine.retry import classified
from tasker.errors import TaskerError, UsageError
from tasker.handlers.claims import Failure, Suspension
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.redaction import REDACTED, Redactor, has_sensitive, texts_of
from tasker.simulation.calls import StepCalls, outcome_of
from tasker.simulation.mock_texts import read_mock
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.recorded_calls import has_effects, mocks_of, recorded_steps
from tasker.simulation.recording import differences_of
from tasker.simulation.run import SimulatedTask
from tasker.simulation.simulate import outside_of_loops
from tasker.simulation.steps import Again, AttemptOutcome, SimulatedStep
from tasker.template.effects import EFFECTS
from tasker.template.plan import Plan
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import TaskReport

NOT_OF_HANDLERS = frozenset({"worker_lost", "handler_timeout", "deadline_exceeded", "worker_error", "handler_crash"})
"""Error types of failures that no call of a handler in this process repeats."""
MISSING: Final = object()
MOST_SHOWN = 200
"""Characters of a value in a difference."""


class Difference(NamedTuple):
    """Place at which the outcome of an attempt differs, with both values."""

    place: tuple[str, ...]
    was: Any
    now: Any


@dataclass(frozen=True, slots=True)
class ReplayedAttempt:
    """Attempt of a step whose handler was called again. `differences` are lines, without sensitive values."""

    step: str
    attempt: int
    differences: tuple[str, ...]


@dataclass(slots=True)
class Replay:
    """Attempts that were replayed, and why the attempts of other steps were not, by step of the template."""

    attempts: list[ReplayedAttempt] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def differing(self) -> list[ReplayedAttempt]:
        """Attempts with another outcome."""
        return [attempt for attempt in self.attempts if attempt.differences]


def replay(
    plan: Plan,
    report: TaskReport,
    history: Iterable[TransitionDetail],
    registry: HandlerRegistry,
    *,
    steps: Collection[str] = (),
    fakes: Mapping[str, Any] | None = None,
    allow_effects: bool = False,
    ignore: Collection[str] = (),
) -> Replay:
    """Call the handlers of a task again with what they read then, and compare the outcomes.

    Args:
        plan: The plan to which the task is pinned.
        report: The task with all its steps, with sensitive values.
        history: Its transitions, in order.
        registry: Today's handlers.
        steps: Steps of the template to replay; empty: all.
        fakes: What the handlers get as resources, by name.
        allow_effects: Also call handlers that are neither pure nor idempotent.
        ignore: Places whose differences do not count, such as `charge.id`.

    Raises:
        UsageError: The task cannot be replayed, or values of it are redacted.
    """
    if unknown := [name for name in steps if name not in plan.by_name]:
        raise UsageError(
            f"{plan.namespace}/{plan.name} has no step {unknown[0]!r}", hint=f"its steps: {', '.join(plan.by_name)}"
        )
    for place in ignore:
        if not any(
            place == name or place.startswith((f"{name}.", f"{name}[")) for name in (*plan.by_name, *report.steps)
        ):
            hint = f"write STEP.NAME; its steps: {', '.join(plan.by_name)}"
            raise UsageError(f"{place!r} to ignore is no place in a result of {plan.namespace}/{plan.name}", hint=hint)
    if has_sensitive(plan) and any(REDACTED in texts_of(value) for value in (report.context, report.results)):
        raise UsageError("sensitive values of the task are redacted", hint="replay needs the permission to read them")
    recorded = recorded_steps(plan, report, history)
    mocks = {name: read_mock(mock, name) for name, mock in mocks_of(plan, recorded, report.results, True).items()}
    calls = _ReplayingCalls(plan, report, mocks, registry, fakes)
    calls.chosen, calls.allow_effects, calls.ignore = frozenset(steps), allow_effects, tuple(ignore)
    task = SimulatedTask(plan, report.context, calls, at=report.created_at)
    try:
        outside_of_loops(task.run)
    except TaskerError as error:
        raise UsageError(f"the task cannot be replayed: {error.message}", hint=error.hint) from None
    if problems := differences_of(recorded, report, SimulatedRun(task, calls.inputs)):
        raise UsageError(f"the task cannot be replayed: {'; '.join(problems[:3])}")
    return calls.replayed


class _ReplayingCalls(StepCalls):
    """Recorded outcomes, each compared with what today's handler makes of the same attempt."""

    chosen: frozenset[str] = frozenset()
    allow_effects = False
    ignore: tuple[str, ...] = ()

    def __init__(
        self,
        plan: Plan,
        report: TaskReport,
        mocks: Mapping[str, Any],
        registry: HandlerRegistry,
        fakes: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(plan, report.context, mocks, registry, fakes or {}, "none")
        self._report, self._fakes = report, fakes or {}
        self._today: dict[str, Any] = {}
        self.replayed = Replay()

    def __call__(self, task: SimulatedTask, step: SimulatedStep) -> AttemptOutcome | None:
        recorded = super().__call__(task, step)
        name = step.plan.name
        if recorded is None or not has_effects(step.plan) or (self.chosen and name not in self.chosen):
            return recorded
        if step.name not in self._report.steps or step.attempts > self._report.steps[step.name].attempts:
            return recorded  # a sample of what has not happened
        if (why := self._why_not(step, recorded.value)) is not None:
            self.replayed.skipped.setdefault(name, why)
            return recorded
        inputs = dict(self.inputs)
        ending = self._ending(self._attempt(task, step), step, None)
        self.inputs = inputs
        if isinstance(ending, Suspension):
            self.replayed.skipped.setdefault(name, "its handler waits for an event, which is not replayed")
            return recorded
        now = outcome_of(ending)
        if isinstance(now, Failure):
            now = classified(now, step.plan.retry)
        lines = tuple(self._lines(step, recorded.value, now))
        self.replayed.attempts.append(ReplayedAttempt(step.name, step.attempts, lines))
        return recorded

    def _why_not(self, step: SimulatedStep, recorded: Any) -> str | None:
        if isinstance(recorded, Failure) and recorded.error_type in NOT_OF_HANDLERS:
            return f"attempt {step.attempts} ended with {recorded.error_type}, which a handler does not decide"
        if self._report.steps[step.name].state == "resolved_manually" or self._report.steps[step.name].reused_from:
            return "its result is not that of an attempt of this task"
        handler = self._handler(step, None)
        if isinstance(handler, Failure):
            return handler.message
        uses: frozenset[str] = getattr(handler, "uses", frozenset())
        if missing := sorted(uses - self._fakes.keys()):
            return f"its handler uses the resource {missing[0]!r}, and --fakes has none of that name"
        effect = step.plan.effect or getattr(handler, "effect", None)
        repeatable = effect is not None and EFFECTS[effect].may_repeat and effect != "transactional"
        if repeatable or uses or self.allow_effects:
            return None
        says = f"has the effect `{effect}`" if effect else "does not say that it may run again (`effect: idempotent`)"
        return f"its handler {says}; --allow-effects calls it"

    def _lines(self, step: SimulatedStep, was: Any, now: Any) -> Iterator[str]:
        if kind_of(was) != kind_of(now):
            redactor = self._redactor(step, was, now)
            yield f"was {redactor.redact(shown(was))}, is now {redactor.redact(shown(now))}"
            return
        if isinstance(was, Failure):
            for field_name in ("error_type", "error_code", "retryable"):
                before, after = getattr(was, field_name), getattr(now, field_name)
                if before != after and not self._is_ignored(step, (field_name,)):
                    yield f"{field_name}: was {before!r}, is now {after!r}"
            return
        if isinstance(was, Again):
            return
        redactor = self._redactor(step, was, now)
        before, after = redactor.result(step.name, was), redactor.result(step.name, now)
        for difference in differences_between(was, now):
            if not self._is_ignored(step, difference.place):
                place = "".join(difference.place).lstrip(".") or "result"
                values = (_at(before, difference.place, difference.was), _at(after, difference.place, difference.now))
                yield f"{place}: was {values[0]}, is now {values[1]}"

    def _redactor(self, step: SimulatedStep, was: Any, now: Any) -> Redactor:
        results = {**self._report.results, step.name: was}
        if not isinstance(now, Failure | Again):
            results[f"{step.plan.name}"] = now
        return Redactor(self._plan, self._report.context, results)

    def _is_ignored(self, step: SimulatedStep, place: tuple[str, ...]) -> bool:
        texts = {f"{name}{''.join(place)}" for name in (step.name, step.plan.name)}
        return any(text == name or text.startswith((f"{name}.", f"{name}[")) for text in texts for name in self.ignore)


def kind_of(outcome: Any) -> str:
    """Return what an outcome is: `failure`, `again` or `result`."""
    return "failure" if isinstance(outcome, Failure) else "again" if isinstance(outcome, Again) else "result"


def shown(outcome: Any) -> str:
    """Return an outcome in a few words."""
    if isinstance(outcome, Failure):
        return f"the failure {outcome.error_type}: {outcome.message:.{MOST_SHOWN}}"
    return "a request to be called again" if isinstance(outcome, Again) else "a result"


def differences_between(was: Any, now: Any, place: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Yield each place at which two values differ; `MISSING` stands for no value."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*was, *now)):
            yield from differences_between(was.get(key, MISSING), now.get(key, MISSING), (*place, f".{key}"))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for number, (before, after) in enumerate(zip(was, now, strict=True)):
            yield from differences_between(before, after, (*place, f"[{number}]"))
    elif was is MISSING or now is MISSING or was != now or isinstance(was, bool) is not isinstance(now, bool):
        yield Difference(place, was, now)


def _at(value: Any, place: tuple[str, ...], original: Any) -> str:
    """Return the value at a place of a redacted result, as text."""
    if original is MISSING:
        return "missing"
    for part in place:
        try:
            value = value[int(part[1:-1])] if part.startswith("[") else value[part[1:]]
        except (TypeError, KeyError, IndexError, ValueError):
            return REDACTED
    return f"{value!r:.{MOST_SHOWN}}"
