"""Scenario files: cases of a template with their mocks and what must come of them, each a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.simulation.mock_texts import read_mock
from tasker.simulation.mocks import Mock
from tasker.simulation.outcome import SimulatedRun, shown_time
from tasker.template.diagnostics import did_you_mean
from tasker.template.durations import parse_duration

_FILE_KEYS = ("template", "name", "handlers", "input", "mocks", "cases")
_CASE_KEYS = ("name", "at", "input", "mocks", "expect")
_WORDS = {
    "status": ("complete", "error", "cancelled"),
    "outcome": ("partial", "compensated", "compensation_failed", None),
}
_EXPECT_KEYS = ("status", "outcome", "route", "attempts", "inputs", "results", "failures", "duration")


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a scenario file."""

    name: str
    file: Path
    template: Path
    template_name: str | None
    values: Mapping[str, Any]
    mocks: Mapping[str, Mock]
    expect: Mapping[str, Any] = field(default_factory=dict)
    at: datetime | None = None
    """Start of the task; None: now."""
    real: bool = False
    """True: steps without a mock, or with a mocked event, call the handlers beside the template."""

    def differences(self, run: SimulatedRun) -> list[str]:
        """Return what the run did otherwise than expected, one line each."""
        return [line for key, wanted in self.expect.items() for line in _DIFFERENCES[key](run, wanted)]


def read_scenarios(file: Path) -> list[Case]:
    """Return the cases of a scenario file. Raises `UsageError` for a file that is none."""
    return cases_of(_content(file), file)


def cases_of(content: Any, file: Path) -> list[Case]:
    """Return the cases of the content of a scenario file. Raises `UsageError`."""
    where = str(file)
    whole = _keys(content, _FILE_KEYS, where)
    cases = whole.get("cases")
    if not isinstance(cases, list) or not cases:
        raise UsageError(f"{where}: expected `cases`, a list", hint="each case has a `name` and what to `expect`")
    if whole.get("handlers", "mocked") not in ("mocked", "real"):
        raise UsageError(f"{where}: handlers: expected mocked or real, found {whole['handlers']!r:.100}")
    template = file.parent / str(whole.get("template", "workflow.yaml"))
    shared = _mocks(whole.get("mocks", {}), f"{where}: mocks")
    read = [_case(file, case, number, template, whole, shared) for number, case in enumerate(cases)]
    names = [case.name for case in read]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{where}: two cases are called {twice[0]!r}")
    return read


def read_mocks(file: Path) -> dict[str, Mock]:
    """Return the mocks of a file by step. Raises `UsageError`."""
    return _mocks(_content(file), str(file))


def _content(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(f"{file}{at}: not valid YAML: {error.problem}") from None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None


def _case(
    file: Path, given: Any, number: int, template: Path, whole: Mapping[str, Any], shared: Mapping[str, Mock]
) -> Case:
    where = f"{file}: cases[{number}]"
    case = _keys(given, _CASE_KEYS, where)
    name = case.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{where}: expected a `name`, a text")
    expect = _keys(case.get("expect", {}), _EXPECT_KEYS, f"{where}: expect")
    if not expect:
        raise UsageError(f"{where}: expected `expect`: a case that expects nothing cannot fail")
    _check_expected(expect, f"{where}: expect")
    values = {**_object(whole.get("input", {}), f"{file}: input"), **_object(case.get("input", {}), f"{where}: input")}
    mocks = {**shared, **_mocks(case.get("mocks", {}), f"{where}: mocks")}
    start, real = _start(case.get("at"), f"{where}: at"), whole.get("handlers") == "real"
    return Case(name, file, template, whole.get("name"), values, mocks, expect, start, real)


def _start(value: Any, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        start = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise UsageError(f"{where}: expected a time such as 2026-01-31T09:00:00Z, found {value!r:.100}") from None
    return start if start.tzinfo is not None else start.replace(tzinfo=UTC)


def _check_expected(expect: Mapping[str, Any], where: str) -> None:
    """Raise `UsageError` for a value to which no run can come."""
    for key, value in expect.items():
        at = f"{where}.{key}"
        if key in ("attempts", "inputs", "results", "failures"):
            _object(value, at)
        elif key == "route" and not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
            raise UsageError(f"{at}: expected a list of steps, found {value!r:.100}")
        elif key in _WORDS and value not in _WORDS[key]:
            hint = did_you_mean(str(value), [word for word in _WORDS[key] if word]) or None
            expected = " or ".join("null" if word is None else word for word in _WORDS[key])
            raise UsageError(f"{at}: expected {expected}, found {value!r:.100}", hint=hint)
        elif key == "duration":
            try:
                _limit(value)
            except ValueError:
                raise UsageError(
                    f"{at}: expected a duration such as 5m, or a bound such as '< 1h30m', found {value!r:.100}"
                ) from None


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: expected keys and values, found {value!r:.100}")
    return dict(value)


def _keys(value: Any, known: tuple[str, ...], where: str) -> dict[str, Any]:
    found = _object(value, where)
    for key in found:
        if key not in known:
            hint = did_you_mean(str(key), known) or f"its keys: {', '.join(known)}"
            raise UsageError(f"{where}: unknown key {key!r}", hint=hint)
    return found


def _mocks(value: Any, where: str) -> dict[str, Mock]:
    return {step: read_mock(mock, f"{where}.{step}") for step, mock in _object(value, where).items()}


def _status(run: SimulatedRun, wanted: Any) -> list[str]:
    return [] if run.status == wanted else [f"status: expected {wanted}, was {run.status}{_reason(run)}"]


def _reason(run: SimulatedRun) -> str:
    failed = [step for step in run.steps.values() if step.failures and step.failures[-1].retry_in_ms is None]
    return "".join(f"\n  {step.name}: {step.failures[-1].failure.message}" for step in failed)


def _route(run: SimulatedRun, wanted: Any) -> list[str]:
    if run.route == wanted:
        return []
    lines = [f"route: expected {' > '.join(map(str, wanted))}", f"            was {' > '.join(run.route)}"]
    names = [name for name in wanted if name not in run.route]
    return [*lines, *(f"  {name} did not run: {run.why(name)}" for name in names if name in run.plan.by_name)]


def _by_step(run: SimulatedRun, wanted: Mapping[str, Any], what: str, read: Any) -> list[str]:
    lines = []
    for name, expected in wanted.items():
        if name not in run.steps:
            lines.append(f"{what} of {name}: it did not run: {run.why(name)}")
        else:
            lines += differences(expected, read(name), f"{what} of {name}")
    return lines


def _duration(run: SimulatedRun, wanted: Any) -> list[str]:
    sign, limit = _limit(wanted)
    took = run.duration_ms
    fits = {"<": took < limit, "<=": took <= limit, ">": took > limit, ">=": took >= limit, "": took == limit}[sign]
    return [] if fits else [f"duration: expected {str(wanted).strip()}, was {shown_time(took)}"]


def _limit(wanted: Any) -> tuple[str, int]:
    """Return the sign of an expected duration and its milliseconds. Raises `ValueError`."""
    text = str(wanted).strip()
    sign = next((sign for sign in ("<=", ">=", "<", ">") if text.startswith(sign)), "")
    return sign, round(parse_duration(text.removeprefix(sign).strip()) * 1000)


def sign_of_duration(wanted: Any) -> str:
    """Return the sign of an expected duration; empty for an exact one."""
    return _limit(wanted)[0]


_DIFFERENCES = {
    "status": _status,
    "outcome": lambda run, wanted: differences(wanted, run.outcome, "outcome"),
    "route": _route,
    "attempts": lambda run, wanted: _by_step(run, wanted, "attempts", lambda name: run.step(name).attempts),
    "inputs": lambda run, wanted: _by_step(run, wanted, "inputs", run.inputs),
    "results": lambda run, wanted: _by_step(run, wanted, "result", lambda name: run.step(name).result),
    "failures": lambda run, wanted: _by_step(run, wanted, "failure", lambda name: run.step(name).error_type),
    "duration": _duration,
}


def differences(expected: Any, found: Any, where: str) -> list[str]:
    """Return how a value differs from the expected one, one line for each place; an object may have further keys."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        lines = []
        for key, value in expected.items():
            at = f"{where}.{key}"
            lines += differences(value, found[key], at) if key in found else [f"{at}: expected {value!r}, is missing"]
        return lines
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            line
            for number, (one, other) in enumerate(zip(expected, found, strict=True))
            for line in differences(one, other, f"{where}[{number}]")
        ]
    return [] if expected == found else [f"{where}: expected {expected!r}, was {found!r}"]
