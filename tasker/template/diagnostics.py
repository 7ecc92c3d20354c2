"""Diagnostics of a template: code, severity, position and suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from tasker.dataclasses import dataclass


class Severity(StrEnum):
    """Severity of a diagnostic: an error makes the template unusable; a warning never does."""

    ERROR = "error"
    WARNING = "warning"


ERRORS = {
    "T001": "The text is not valid YAML",
    "T002": "A tab where YAML allows only spaces",
    "T003": "The same key twice in one mapping",
    "T004": "An unquoted `{{ ... }}`",
    "T005": "A key that is not text",
    "T006": "An alias that contains itself",
    "T007": "Too deep or too large",
    "T008": "A YAML tag that templates do not use",
    "T009": "A value that JSON cannot hold",
    "T010": "The file holds no template",
    "T011": "A document that is not a mapping",
    "T012": "The file is not UTF-8",
    "T020": "Unknown key",
    "T021": "Missing key",
    "T022": "Wrong type of value",
    "T023": "Not one of the allowed values",
    "T024": "Number out of range, or an empty value",
    "T025": "Two spellings of one setting that differ",
    "T026": "Malformed name",
    "T027": "A key that Tasker refuses",
    "T028": "Not a valid JSON Schema",
    "T030": "Two steps of the same name",
    "T031": "Two templates of the same name in one file",
    "T032": "An override for a step that does not exist, or two for one step",
    "T033": "A system that the template does not declare",
    "T034": "Unknown retry profile",
    "T035": "A handler that cannot be resolved",
    "T036": "Two settings for one circuit breaker",
    "T037": "A handler that does not fit its step",
    "T038": "A limit of memory without a process",
    "T039": "Two events of one name",
    "T040": "Unknown dependency",
    "T041": "A cycle of dependencies",
    "T050": "A batch_worker without exactly one batchable step",
    "T051": "A batchable step without a batch_worker",
    "T052": "A step that waits for a batch_worker but is no convergence",
    "T053": "A convergence with nothing to converge",
    "T054": "Unreachable conditional step",
    "T055": "A step named like an instance of a batch_worker",
    "T056": "batch_config on a step without batches",
    "T057": "A worker_template that is no batch_worker of the step",
    "T060": "A malformed duration",
    "T061": "Not a time, and no path in the input or in the result of a step above",
    "T062": "Two settings that exclude each other",
    "T063": "Delays that take longer than the deadline",
    "T064": "An error rule that can match nothing",
    "T065": "A key of conditions, rules, lists or inputs that its step cannot have",
    "T066": "An expression where none is allowed",
    "T067": "A rule with a step that is not a branch of its decision",
    "T068": "More than 50 conditions that depend on each other in a row",
    "T069": "A name that is reserved for the condition or list of a step",
    "T090": "An expression that cannot be parsed, or that YAML reads otherwise",
    "T091": "Unknown name, field, step or function in an expression",
    "T092": "Types in an expression that do not fit",
    "T093": "A field that may be absent or null, read without `has()` or `.?`",
    "T094": "The result of a step that is not above",
    "T095": "The result of a branch that may not exist, read without `has()` or `.?`",
    "T099": "A wait for an event or a person without a timeout",
    "T100": "Unknown input of a built-in step",
    "T101": "Missing input of a built-in step",
    "T102": "Invalid input of a built-in step",
    "T103": "An expression in an input of a built-in step that must be a fixed value",
    "T104": "A key that a built-in step cannot have",
    "T105": "A result_schema that contradicts the inputs of `tasker.transform`",
    "T110": "A malformed cron expression",
    "T111": "Unknown time zone",
    "T112": "Not a date, or not a time with a zone",
    "T113": "Two schedules of one name",
    "T114": "A schedule that never fires",
    "T115": "A schedule whose context does not fit the input_schema",
    "T116": "Not a path in the input or in the result of a step above",
    "T117": "Different numbers for one limit",
    "T118": "A malformed rate",
    "T120": "Invalid priority",
    "T125": "Duplicate limit",
    "T126": "Unknown limit: no configuration declares it",
    "T130": "A path of `unique`, `debounce` or `tenant` that the input schema excludes",
    "T131": "Invalid times of `debounce`, or an input_schema that does not fit it",
    "T132": "A key that cannot be combined with `debounce`",
    "T140": "A wait without `for` or `until`, or with both",
    "T141": "A key of waits on another step, or a key of other steps on a wait",
    "T142": "Invalid time of day",
    "T143": "A wait for an event without `event` or `events`, or with both",
    "T144": "Keys of a wait for events that cannot be combined",
    "T150": "Several keys for the meaning of a failure",
    "T151": "`on_failure` runs a step that does not exist, or the failed step itself",
    "T152": "One failure step for several steps",
    "T153": "`on_failure: {run: ...}` on a step with many instances",
    "T154": "A failure step with dependencies",
    "T155": "A failure step that creates steps",
    "T156": "A step that depends on a failure step",
    "T170": "Unknown built-in step",
    "T180": "A step that starts child tasks without their `template`",
    "T181": "A key of child tasks on another step",
    "T182": "Invalid number or share of tolerated failures",
    "T183": "A key of a list of child tasks on a step with one, or a key of batches on child tasks",
    "T184": "A template that starts itself",
    "T192": "Invalid name of a person who decides",
    "T193": "Invalid permission of those who decide",
    "T194": "A form without fields, or with `$ref`",
    "T195": "An approval that needs more persons than may decide",
    "T196": "A reminder or an escalation at an impossible time",
    "T200": "`memoize` on a step that is not declared pure",
    "T201": "`memoize` on a step with several instances",
    "T202": "`memoize` with a key from a step that is not above",
    "T203": "`memoize` that stores nothing",
    "T210": "`finally` names a step that does not exist, or one step twice",
    "T211": "A step of `finally` in the dependencies of others, or with its own",
    "T212": "A step of `finally` with a key that does not fit it",
    "T213": "A template with steps of `finally` alone",
    "T214": "`on_failure: compensate` in a template without `compensate`",
    "T215": "`compensate` on a step whose effect cannot be undone as one",
    "T216": "A step with the name of a compensation",
    "T220": "Retries of a step that runs once",
    "T221": "`effect: once` and `on_worker_lost: retry`",
    "T222": "A transactional step in a child process",
    "T223": "A compensation of a pure step, or an event of it that the database does not store",
    "T224": "A transactional step that creates steps, or runs for each item of a list",
    "T230": "A result_schema that does not fit the model with which a handler reads the result",
    "T231": "An input_schema that does not fit the model with which a handler reads the input",
}

WARNINGS = {
    "T042": "The same dependency twice",
    "T070": "A convergence that does not list its decision",
    "T071": "Several batch_worker steps for one batchable step",
    "T072": "A branch that the convergence does not wait for",
    "T073": "A decision with nothing to decide",
    "T074": "A convergence that is not declared as one",
    "T075": "A publisher that cannot be found",
    "T076": "An event that no step publishes",
    "T077": "A value that no schema describes, with `--strict`",
    "T078": "A property that nothing reads, with `--strict`",
    "T079": "A rule that never applies, or a branch that no rule creates",
    "T080": "max_attempts: 0",
    "T081": "max_attempts without effect",
    "T082": "The first delay is above the limit of delays",
    "T083": "An older spelling, or a key without effect",
    "T084": "A variable that is not replaced",
    "T085": "A key that has no effect in this version",
    "T086": "A plugin whose rules cannot be asked",
    "T232": "An input_schema that does not fit the type hints of a handler",
}

CODES = {**ERRORS, **WARNINGS}


def severity_of(code: str) -> Severity:
    """Return the severity of the code."""
    return Severity.WARNING if code in WARNINGS else Severity.ERROR


class Position(NamedTuple):
    """Part of a line; line and column count from 1."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Problem of a template: a stable code, what is wrong, where, and how to fix it."""

    code: str
    severity: Severity
    message: str
    file: str
    line: int
    column: int
    length: int = 1
    hint: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnostic as plain data."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "length": self.length,
            "hint": self.hint,
        }


class Report:
    """Collection of the diagnostics of one file; the same problem at the same position is recorded once."""

    def __init__(self, file: str, text: str = "") -> None:
        self.file, self.text = file, text
        self._found: dict[tuple[str, Position, str], Diagnostic] = {}

    def add(self, code: str, message: str, location: Position, hint: str | None = None) -> None:
        """Record a problem; its severity follows from the code."""
        diagnostic = Diagnostic(code, severity_of(code), message, self.file, *location, hint=hint)
        self._found.setdefault((code, location, ""), diagnostic)

    def add_found(self, code: str, severity: Severity, message: str, location: Position, hint: str | None) -> None:
        """Record a plugin's finding. Its codes are its own, and it may report several findings at one position."""
        diagnostic = Diagnostic(code, severity, message, self.file, *location, hint=hint)
        self._found.setdefault((code, location, message), diagnostic)

    @property
    def errors(self) -> int:
        """Number of errors recorded so far."""
        return sum(d.severity is Severity.ERROR for d in self._found.values())

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return all diagnostics in the order of the file."""
        return tuple(sorted(self._found.values(), key=lambda d: (d.line, d.column, d.code)))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return a hint with the nearest known word, or None if none is near."""
    matches = near(word, list(known))
    return f"did you mean `{matches[0]}`?" if matches else None


def near(word: str, known: Sequence[str], most: int = 1) -> list[str]:
    """Return similar known words, the nearest first."""
    from difflib import get_close_matches  # lazy import, needed only for mistakes

    return get_close_matches(word, known, n=most, cutoff=0.6)


def listed(words: Iterable[str]) -> str:
    """Format the words as code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)
