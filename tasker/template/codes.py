"""Diagnostic codes with meaning and severity. A code never changes its meaning."""

from __future__ import annotations

from enum import StrEnum


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
    "T061": "Not a time, and no place in the input or in the result of a step above",
    "T062": "Two settings that exclude each other",
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
    "T080": "max_attempts: 0",
    "T081": "max_attempts without effect",
    "T082": "The first delay is above the limit of delays",
    "T083": "An older spelling, or a key without effect",
    "T084": "A variable that is not replaced",
    "T085": "A key that has no effect in this version",
    "T086": "A plugin whose rules cannot be asked",
}

CODES = {**ERRORS, **WARNINGS}


def severity_of(code: str) -> Severity:
    """Return the severity of the code."""
    return Severity.WARNING if code in WARNINGS else Severity.ERROR
