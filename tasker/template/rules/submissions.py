"""Rules of keys that are read from the input when a task is submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.graph import DependencyGraph

PLACES: Final = (("unique", "key"), ("tenant", "from"))


def places_fit_the_input(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that the places exist in an input whose schema allows no other properties."""
    for path in PLACES:
        value: Any = document
        for key in path:
            value = value.get(key, {}) if isinstance(value, Mapping) else {}
        parts = value.get("input", ()) if isinstance(value, Mapping) else ()
        missing = _missing(document.get("input_schema"), parts)
        reading = next(iter(graph.steps.values())).reading if graph.steps else None
        if missing is not None and reading is not None:
            name, known = missing
            hint = did_you_mean(name, known) or f"properties of the input: {listed(known) or 'none'}"
            reading.report.add("T130", f"the input has no property `{name}`", reading.value(*path), hint)


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
