"""A task that ran as a case of a scenario file, which is simulated before it is returned."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import yaml

from tasker.dataclasses import dataclass
from tasker.errors import TaskerError, UsageError
from tasker.simulation.outcome import SimulatedRun
from tasker.simulation.recorded_calls import Mocked, RecordedStep, mocks_of, recorded_steps
from tasker.simulation.scenarios import cases_of
from tasker.simulation.simulate import simulate
from tasker.simulation.substitutes import Substitutes
from tasker.template.plan import Plan, TemplateId
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import TaskReport

MOST_STEPS = 20_000
"""Steps of a task that can be recorded."""
LONG_RESULT = 2_000
"""Characters of a result as JSON above which it is cut to what the template reads of it."""
MOST_EXPECTED = 100
"""Names in a list of `expect`: longer ones are left out, for nobody reads them."""
MOST_TRIED = 20
"""Places of sensitive values that are tried when the simulated run differs, to say which to keep."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Case of a scenario file, as text."""

    text: str
    template_id: TemplateId
    steps: int
    replaced: tuple[str, ...]
    """Places of the sensitive values that were replaced."""
    kept: tuple[str, ...]
    cut: tuple[str, ...]
    """Steps whose long results were cut to what the template reads."""
    notes: tuple[str, ...]


def record(
    plan: Plan,
    report: TaskReport,
    history: Iterable[TransitionDetail],
    *,
    template: str = "workflow.yaml",
    keep: Collection[str] = (),
    full: bool = False,
) -> Recording:
    """Return a task as a case with the same result on the simulator. Sensitive values are replaced.

    Args:
        plan: The plan to which the task is pinned.
        report: The task with all its steps.
        history: Its transitions, in order.
        template: Path of the template's file, relative to the scenario file.
        keep: Places of sensitive values that stay, such as `input.card` and `steps.charge.receipt`.
        full: Keep long results whole.

    Raises:
        UsageError: The simulated run differs; the message says where, the hint what to do.
    """
    if len(report.steps) > MOST_STEPS:
        raise UsageError(f"the task has {len(report.steps)} steps, and a case at most {MOST_STEPS}")
    if report.status == "cancelled":
        hint = "record a task that ended by itself"
        raise UsageError("the task was cancelled, and simulated runs are not", hint=hint)
    recorder = _Recorder(plan, report, recorded_steps(plan, report, history), template)
    made, problems = recorder.made(keep, full)
    if problems and made.cut:
        made, problems = recorder.made(keep, full=True)
    if problems:
        raise UsageError(f"the simulated run differs: {'; '.join(problems[:5])}", hint=recorder.hint(made, keep))
    return made


class _Recorder:
    def __init__(self, plan: Plan, report: TaskReport, steps: Mapping[str, RecordedStep], template: str) -> None:
        self._plan, self._report, self._steps, self._template = plan, report, steps, template

    def made(self, keep: Collection[str], full: bool) -> tuple[Recording, list[str]]:
        """Return the case, and how its simulated run differs from the task."""
        plan, report = self._plan, self._report
        substitutes = Substitutes(keep)
        for value, schema, place in self._values():
            substitutes.collect(value, schema, place)
        substitutes.choose()
        context, *results = (substitutes.replaced(*value) for value in self._values())
        by_name = dict(
            zip((name for name, step in report.steps.items() if step.result is not None), results, strict=True)
        )
        cut: list[str] = []
        if not full:
            by_name = {name: self._cut(name, result, cut) for name, result in by_name.items()}
        mocks: Mocked = substitutes.in_texts(mocks_of(plan, self._steps, by_name, not report.finished))
        case = {
            "name": substitutes.in_texts(self._name()),
            "at": report.created_at.astimezone(UTC).isoformat(timespec="milliseconds"),
            "input": context,
            "mocks": mocks,
        }
        run, problems = self._simulated(case)
        expect = {} if run is None else self._expected(run)
        head = self._head(tuple(substitutes.places), cut)
        document = {"template": self._template, "name": plan.name, "cases": [{**case, "expect": expect}]}
        text = head + yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
        places, kept = tuple(substitutes.places), tuple(substitutes.kept)
        return Recording(text, plan.id, len(report.steps), places, kept, tuple(cut), tuple(self._notes())), problems

    def hint(self, made: Recording, keep: Collection[str]) -> str | None:
        """Return which sensitive value decides, if it is one of them."""
        for place in made.replaced[:MOST_TRIED]:
            if not self.made((*keep, place), full=True)[1]:
                return f"the sensitive value at {place} decides: --keep '{place}' writes it as it is"
        notes = self._notes()
        return f"{'; '.join(notes)}: simulated runs have no operators" if self._operated() else None

    def _name(self) -> str:
        """Return a name for the case that says how the task ended."""
        error = self._report.error
        if self._report.status == "error" and error and error.get("step"):
            return f"{error['step']} fails with {error.get('type')}"
        return f"the task is {self._report.outcome or self._report.status}"

    def _values(self) -> list[tuple[Any, Mapping[str, Any] | None, str]]:
        """Return the input and the results, each with its schema and its place."""
        values: list[tuple[Any, Mapping[str, Any] | None, str]] = [
            (self._report.context, self._plan.input_schema, "input")
        ]
        for name, step in self._report.steps.items():
            if step.result is not None:
                of = self._steps[name].plan
                values.append((step.result, of.result_schema, f"steps.{of.name}"))
        return values

    def _cut(self, name: str, result: Any, cut: list[str]) -> Any:
        if not isinstance(result, Mapping) or len(json.dumps(result, default=str)) <= LONG_RESULT:
            return result
        step = self._steps[name].plan
        read = _keys_read(self._plan, step.name)
        if read is None or step.type.expands or step.for_each is not None or step.wait is not None:
            return result
        read |= set((step.result_schema or {}).get("required", ()))
        if read >= result.keys():
            return result
        cut.append(name)
        return {key: value for key, value in result.items() if key in read}

    def _simulated(self, case: Mapping[str, Any]) -> tuple[SimulatedRun | None, list[str]]:
        """Return the run of a case as a scenario file would have it, and how it differs from the task."""
        whole = {"cases": [{**case, "expect": {"status": "complete"}}]}
        try:
            (read,) = cases_of(yaml.load(yaml.dump(whole, Dumper=_Dumper), Loader=yaml.CSafeLoader), Path("recorded"))
            run = simulate(self._plan, read.values, read.mocks, at=read.at)
        except TaskerError as error:
            return None, [error.message]
        return run, differences_of(self._steps, self._report, run)

    def _expected(self, run: SimulatedRun) -> dict[str, Any]:
        """Return what the case expects: of an open task only what has ended."""
        ended = [name for name, step in self._steps.items() if step.ended and step.plan.made_for is None]
        expect: dict[str, Any] = {}
        if self._report.finished:
            expect["status"] = run.status
            if run.outcome is not None:
                expect["outcome"] = run.outcome
            if len(run.route) <= MOST_EXPECTED:
                expect["route"] = run.route
        attempts = {name: run.steps[name].attempts for name in ended if name in run.steps}
        failed = {name: run.steps[name].error_type for name in ended if name in run.steps and _has_failed(run, name)}
        evaluated = [name for name in ended if name in run.steps and not self._steps[name].is_mocked]
        results = {name: run.steps[name].result for name in evaluated if _is_short(run.steps[name].result)}
        lists: dict[str, dict[str, Any]] = {
            "attempts": {name: count for name, count in attempts.items() if count > 1 or not self._report.finished},
            "failures": failed,
            "results": {name: result for name, result in results.items() if not self._steps[name].plan.wait},
        }
        expect |= {key: names for key, names in lists.items() if names and len(names) <= MOST_EXPECTED}
        return expect or {"status": run.status}

    def _operated(self) -> list[RecordedStep]:
        return [step for step in self._steps.values() if step.by_operator is not None]

    def _notes(self) -> list[str]:
        notes = [f"an operator {step.by_operator} {step.report.name}" for step in self._operated()[:5]]
        if reused := [name for name, step in self._report.steps.items() if step.reused_from]:
            notes.append(f"the task is a rerun: the results of {', '.join(reused[:5])} are those of an earlier task")
        if not self._report.finished:
            notes.append("the task was open: steps without an end return samples, and `expect` has only what had ended")
        return notes

    def _head(self, replaced: tuple[str, ...], cut: list[str]) -> str:
        plan, report = self._plan, self._report
        of = f"{plan.namespace}/{plan.name}:{plan.version}, content {plan.id.hash[:16]}"
        lines = [f"Recorded from the task {report.task_uuid} ({report.status})", f"of {of}."]
        if replaced:
            lines.append(f"Sensitive values were replaced: {', '.join(replaced[:20])}{' ...' * (len(replaced) > 20)}.")
        if cut:
            lines.append(f"Long results were cut to what the template reads: {', '.join(cut[:20])}.")
        lines += [f"{note[0].upper()}{note[1:]}." for note in self._notes()]
        return "".join(f"# {line}\n" for line in lines)


def differences_of(steps: Mapping[str, RecordedStep], report: TaskReport, run: SimulatedRun) -> list[str]:
    """Return how a simulated run differs from a task; of an open task only what has ended counts."""
    problems: list[str] = []
    for step in steps.values():
        if report.finished or step.ended:
            problems += _step_differs(step, run)
    if report.finished:
        problems += [f"{name} was created: {run.why(name)}" for name in run.steps if name not in steps]
        if (run.status, run.outcome) != (report.status, report.outcome):
            was = run.status + f" ({run.outcome})" * bool(run.outcome)
            problems.append(f"the task is {report.status}, and the simulated one {was}")
    return problems


def _step_differs(step: RecordedStep, run: SimulatedRun) -> list[str]:
    of, name = step.report, step.report.name
    if name not in run.steps:
        return [f"{name} was not created: {_why(run, name)}"]
    made = run.steps[name]
    state = "complete" if of.state == "resolved_manually" else of.state
    if (state, of.settled is None) != (str(made.state), made.settled is None):
        return [f"{name} is {of.state}, and the simulated one {made.state}: {_why(run, name)}"]
    if step.by_operator is None and of.reused_from is None and of.attempts != made.attempts:
        return [f"{name} had {of.attempts} attempts, and the simulated one {made.attempts}"]
    error = (of.error or {}).get("type")
    if of.state == "error" and error not in (made.error_type, None):
        return [f"{name} failed with {error}, and the simulated one with {made.error_type}"]
    return []


def _why(run: SimulatedRun, name: str) -> str:
    try:
        step = run.steps.get(name)
        if step is not None and step.failures:
            return step.failures[-1].failure.message
        return run.why(name)
    except UsageError:
        return run.why(name.rpartition("_")[0])


def _has_failed(run: SimulatedRun, name: str) -> bool:
    failures = run.steps[name].failures
    return bool(failures) and failures[-1].retry_in_ms is None


def _is_short(result: Any) -> bool:
    return result is not None and len(json.dumps(result, default=str)) <= LONG_RESULT


def _keys_read(plan: Plan, step: str) -> set[str] | None:
    """Return the keys of a step's result that expressions of the template read; None: any of them."""
    text = plan.to_json()
    if f'"step":"{step}"' in text:
        return None
    name = re.escape(step)
    if re.search(rf"\bsteps(?:\.\??{name}|\[\\?['\"]{name}\\?['\"]\])(?!\w|\.\??[A-Za-z_])", text):
        return None
    return set(re.findall(rf"\bsteps\.\??{name}\.\??(\w+)", text))


class _Dumper(yaml.CSafeDumper):
    """Writes short lists and objects in one line."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values out, not as references."""
        return True

    def represent_sequence(self, tag: str, sequence: Any, flow_style: Any = None) -> yaml.SequenceNode:
        """Write a list in one line if it is short."""
        return super().represent_sequence(tag, sequence, flow_style=_fits_in_a_line(sequence))

    def represent_mapping(self, tag: str, mapping: Any, flow_style: Any = None) -> yaml.MappingNode:
        """Write an object in one line if it is short."""
        return super().represent_mapping(tag, mapping, flow_style=_fits_in_a_line(mapping))


def _fits_in_a_line(value: Any) -> bool:
    return len(json.dumps(value, default=str, ensure_ascii=False)) <= 100
