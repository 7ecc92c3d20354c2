"""Result of a simulated run: its route, attempts and times, and why each step ran or did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasker.errors import UsageError
from tasker.handlers.evaluated_steps import REASON, RULE
from tasker.handlers.outcome_forms import DECISION_KEY
from tasker.simulation.coverage import Item, covered
from tasker.simulation.published import SimulatedEvent
from tasker.simulation.run import SimulatedTask
from tasker.simulation.steps import DONE, SimulatedStep
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.durations import readable_duration
from tasker.template.failure_words import OPTIONAL, SKIPPED, WORDS
from tasker.template.plan import Plan


class SimulatedRun:
    """Run of a task without a database. Times are milliseconds of its virtual clock since the start of the task."""

    def __init__(self, task: SimulatedTask, inputs: Mapping[str, Any], events: Sequence[SimulatedEvent] = ()) -> None:
        self._task, self._inputs = task, inputs
        self.events = tuple(events)
        """Events that the run published, in order."""

    @property
    def plan(self) -> Plan:
        """The compiled template."""
        return self._task.plan

    @property
    def status(self) -> str:
        """State in which the task ended: `complete`, `error` or `cancelled`."""
        return str(self._task.state)

    @property
    def outcome(self) -> str | None:
        """`partial` if the task is complete without some of its steps, `compensated` or `compensation_failed`."""
        if self._task.phases.outcome is not None:
            return self._task.phases.outcome
        missing = any(step.settled not in (None, WORDS[OPTIONAL].letter) for step in self.steps.values())
        return "partial" if missing and self.status == "complete" else None

    @property
    def path(self) -> list[str]:
        """States of the task, in order."""
        return [str(state) for state in self._task.path]

    @property
    def steps(self) -> Mapping[str, SimulatedStep]:
        """All steps that were created, by name, with those that the compiler made for `when` and `for_each`."""
        return self._task.steps

    @property
    def route(self) -> list[str]:
        """Names of the steps that ran, in the order of their first attempts, without those that the compiler made."""
        ran = [step for step in self.steps.values() if step.started_ms is not None and step.plan.made_for is None]
        return [step.name for step in sorted(ran, key=lambda step: (step.started_ms, step.first_attempt))]

    @property
    def results(self) -> dict[str, Any]:
        """Results of the steps that completed, by name."""
        return {step.name: step.result for step in self.steps.values() if step.state in DONE}

    @property
    def duration_ms(self) -> int:
        """Time from the start of the task to its end."""
        return self._task.now

    @property
    def busy_ms(self) -> int:
        """Total time of all attempts."""
        return sum(step.busy_ms for step in self.steps.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of decisions and batchable steps about what they created."""
        return tuple(self._task.warnings)

    def step(self, name: str) -> SimulatedStep:
        """Return a step of the run. Raises `UsageError` if it was not created, with the reason."""
        if name in self.steps:
            return self.steps[name]
        raise UsageError(f"the run has no step {name!r}: {self.why(name)}")

    def covered(self) -> set[Item]:
        """Return what the run has shown of the template's graph."""
        return covered(self._task)

    def has(self, template_step: str) -> bool:
        """Return whether a step of the template was created, at least one instance of it for a batch_worker."""
        return bool(self._task.instances(template_step))

    def inputs(self, name: str) -> Any:
        """Return the evaluated `inputs` of the step's last attempt; of a step with `for_each` the list of all items."""
        self.step(name)
        return self._inputs.get(name)

    def critical_path(self) -> list[SimulatedStep]:
        """Return the steps that determined the duration, in order: each began when the one before it ended."""
        ended = [step for step in self.steps.values() if step.ended_ms is not None]
        last = max(ended, key=_end, default=None)
        path: list[SimulatedStep] = []
        while last is not None:
            path.insert(0, last)
            parents = [self.steps[name] for name in last.parents]
            last = max(parents, key=_end, default=None)
        return path

    def why(self, name: str) -> str:
        """Return why a step ran, or why it did not. Raises `UsageError` for a name that the template does not have."""
        plan, step = self.plan, self.steps.get(name)
        if step is None and name not in plan.by_name:
            raise UsageError(
                f"{plan.namespace}/{plan.name} has no step {name!r}",
                hint=did_you_mean(name, plan.by_name) or f"its steps: {listed(list(plan.by_name))}",
            )
        if step is None:
            return self._why_absent(name)
        if step.started_ms is None:
            return self._why_not_started(step)
        if step.plan.undoes is not None:
            return f"it undoes {step.plan.undoes}: the task failed, and is compensated"
        if step.plan.at_rest:
            return "all other steps had come to rest"
        return self._why_created(step) or (
            "all of its dependencies completed" if step.parents else "it has no dependencies"
        )

    def _why_absent(self, name: str) -> str:
        """Return why a step was not created: what the decision above it decided."""
        step = self.plan.by_name[name]
        entry = self.plan.entries.get(name)
        if entry is not None and entry in self.steps and entry != name:
            made = self.steps[entry]
            return self._decided(made) or self._why_not_started(made)
        if step.handles is not None:
            return f"it runs only if {step.handles} fails"
        if step.undoes is not None:
            return f"it undoes {step.undoes}, and runs only if that is complete when the task is compensated"
        for above in step.depends_on:
            if above in self.steps and self.plan.by_name[above].type.expands:
                decider = self.steps[above]
                return self._decided(decider) or f"{above} has not decided: {self._why_not_started(decider)}"
        absent = next((above for above in step.depends_on if not self._task.instances(above)), None)
        return "it was not created" if absent is None else f"{absent} was not created: {self._why_absent(absent)}"

    def _decided(self, step: SimulatedStep) -> str | None:
        if not isinstance(step.result, Mapping) or step.state not in DONE:
            return None
        if reason := step.result.get(REASON):
            rule = step.result.get(RULE)
            shown = step.plan.made_for or step.name
            which = f"rule {rule} of {shown}" if rule and step.plan.made_for is None else shown
            return f"{which}: {reason}"
        outcome = step.result.get(DECISION_KEY)
        names = outcome.get("step_names", outcome.get("next_step_names", ())) if isinstance(outcome, Mapping) else None
        return None if names is None else f"{step.name} took {', '.join(names) or 'no branch'}"

    def _why_created(self, step: SimulatedStep) -> str | None:
        deciders = [self.steps[name] for name in step.parents if self.steps[name].plan.type.expands]
        return next((reason for decider in deciders if (reason := self._decided(decider))), None)

    def _why_not_started(self, step: SimulatedStep) -> str:
        if step.started_ms is not None:
            return f"{step.name} is {step.state}" + (f" ({step.error_type})" if step.failures else "")
        if step.settled == SKIPPED:
            return "it was skipped: a step above it failed, and `on_failure` skips what depends on it"
        if step.failures:
            return str(step.failures[-1].failure.message)
        waits = [self.steps[name] for name in step.parents if self.steps[name].state not in DONE]
        failed = [above for above in waits if above.failures and above.ended_ms is not None]
        if failed:
            return f"{failed[0].name} failed ({failed[0].error_type})"
        if waits:
            return f"{waits[0].name} did not complete: {self._why_not_started(waits[0])}"
        return "the task ended before it could start"

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        return {
            "status": self.status,
            "duration_ms": self.duration_ms,
            "route": self.route,
            "critical_path": [step.name for step in self.critical_path()],
            "steps": [self._row(step) for step in self.steps.values()],
            "warnings": list(self.warnings),
        }

    def _row(self, step: SimulatedStep) -> dict[str, Any]:
        failures = [
            {
                "attempt": each.attempt,
                "error_type": each.failure.error_type,
                "message": each.failure.message,
                "retry_in_ms": each.retry_in_ms,
            }
            for each in step.failures
        ]
        return {
            "name": step.name,
            "state": str(step.state),
            "attempts": step.attempts,
            "depends_on": list(step.parents),
            "started_ms": step.started_ms,
            "ended_ms": step.ended_ms,
            "result": step.result,
            "failures": failures,
            "why": self.why(step.name),
        }


def _end(step: SimulatedStep) -> tuple[int, int]:
    return step.ended_ms or 0, step.first_attempt


def shown_time(milliseconds: int) -> str:
    """Return a virtual time as people read it."""
    return f"{milliseconds} ms" if milliseconds < 1000 else readable_duration(round(milliseconds / 1000, 1))
