"""Rules of keys that are read from the input when a task is submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import DocumentReading
from tasker.template.durations import duration_text
from tasker.template.graph import DependencyGraph
from tasker.template.names import COLLECT, COLLECTED

PLACES: Final = (("unique", "key"), ("tenant", "from"), ("debounce", "key"))


def places_fit_the_input(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that the places exist in an input whose schema allows no other properties, and the keys of `debounce`."""
    reading = next(iter(graph.steps.values())).reading if graph.steps else None
    if reading is not None and isinstance(document.get("debounce"), Mapping):
        _debounce_fits(document, reading)
    for path in PLACES:
        value: Any = document
        for key in path:
            value = value.get(key, {}) if isinstance(value, Mapping) else {}
        parts = value.get("input", ()) if isinstance(value, Mapping) else ()
        missing = _missing(document.get("input_schema"), parts)
        if missing is not None and reading is not None:
            name, known = missing
            hint = did_you_mean(name, known) or f"properties of the input: {listed(known) or 'none'}"
            reading.report.add("T130", f"the input has no property `{name}`", reading.value(*path), hint)


def _debounce_fits(document: Mapping[str, Any], reading: DocumentReading) -> None:
    debounce, report = document["debounce"], reading.report
    wait, longest = debounce.get("wait"), debounce.get("max_wait")
    if wait == 0:
        report.add("T131", "`wait`: expected more than 0s", reading.value("debounce", "wait"), "leave `debounce` out")
    elif wait is not None and longest is not None and longest < wait:
        message = f"`max_wait` is shorter than `wait`, {duration_text(wait)}"
        report.add("T131", message, reading.value("debounce", "max_wait"), "no task could wait so long")
    if debounce.get("keep") == COLLECT:
        schema = document.get("input_schema")
        hint = "declare it as an array, not as required: Tasker fills it in"
        if _missing(schema, [COLLECTED]) is not None:
            message = f"the input has no property `{COLLECTED}`, in which `keep: {COLLECT}` puts all inputs"
            report.add("T131", message, reading.value("debounce", "keep"), hint)
        elif isinstance(schema, Mapping) and COLLECTED in (schema.get("required") or ()):
            message = f"`{COLLECTED}` is required, and no submission has it"
            report.add("T131", message, reading.value("input_schema"), hint)
    if "unique" in document:
        message = "`debounce` and `unique` exclude each other"
        report.add("T132", message, reading.value("unique"), "a task that waits is the only one of its key anyway")
    if document.get("identity_strategy", "always_unique") != "always_unique":
        message = f"`debounce` excludes `identity_strategy: {document['identity_strategy']}`"
        hint = "leave it out: what is one task, the `key` says"
        report.add("T132", message, reading.value("identity_strategy"), hint)


def _missing(schema: Any, parts: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the part that a closed schema does not have, and the properties that it has."""
    for part in parts:
        if not isinstance(schema, Mapping) or "$ref" in schema or not isinstance(schema.get("properties"), Mapping):
            return None
        properties = schema["properties"]
        if part not in properties:
            return (part, list(properties)) if schema.get("additionalProperties") is False else None
        schema = properties[part]
    return None
