"""Smallest values that fit a JSON Schema, for steps whose results nobody has described further."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tasker.errors import UsageError
from tasker.handlers.builtin import HANDLERS as PURE
from tasker.simulation.coverage import branches_of
from tasker.simulation.mocks import Mock, batched, decided, event, route
from tasker.template.plan import Plan, StepPlan
from tasker.template.schema_check import check_result
from tasker.template.step_types import Creates

FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "email": "somebody@example.com",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: Mapping[str, Any] | None) -> Any:
    """Return a small value that fits the schema; {} without one. Raises `ValueError` if none is found."""
    if schema is None:
        return {}
    value = _value(schema, schema)
    if mismatches := check_result(schema, value):
        raise ValueError(str(mismatches[0]))
    return value


def _value(schema: Any, root: Mapping[str, Any]) -> Any:
    if not isinstance(schema, Mapping):
        return {}
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    for listed in ("examples", "enum"):
        if schema.get(listed):
            return schema[listed][0]
    if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#/"):
        return _value(referred(root, reference), root)
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return _value({**schema, several: None, **schema[several][0]}, root)
    kind = schema.get("type", "object")
    return _typed(kind[0] if isinstance(kind, list) else kind, schema, root)


def _typed(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    match kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: _value(properties.get(name, {}), root) for name in schema.get("required", ())}
        case "array":
            return [_value(schema.get("items", {}), root) for _ in range(schema.get("minItems", 0))]
        case "string":
            text = FORMATS.get(schema.get("format", ""), "text")
            return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]
        case "integer" | "number":
            return _number(schema, whole=kind == "integer")
        case "boolean":
            return True
    return None


def _number(schema: Mapping[str, Any], *, whole: bool) -> Any:
    step = schema.get("multipleOf", 1)
    least = schema.get(
        "minimum", schema.get("exclusiveMinimum", schema.get("maximum", schema.get("exclusiveMaximum", 1)))
    )
    value = -(-least // step) * step
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        value += step
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        value -= step
    return int(value) if whole else value


def referred(root: Mapping[str, Any], reference: str) -> Any:
    """Return the part of a schema to which a `$ref` into the same schema refers."""
    found: Any = root
    for part in reference[2:].split("/"):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    return found


def sampled(plan: Plan, mocked: Collection[str]) -> dict[str, Any]:
    """Return mocks for the steps that would call a handler with effects and are not `mocked`: results that fit.

    A decision takes all of its branches, a batchable step cuts two batches. Raises `UsageError` for a step whose
    `result_schema` no small value fits.
    """
    steps = [
        step
        for step in plan.steps
        if (step.has_handler and step.handler.callable not in PURE) or step.is_ended_by_others
    ]
    return {step.name: _mock(plan, step) for step in steps if step.name not in mocked}


def _mock(plan: Plan, step: StepPlan) -> Any:
    if step.type.creates is Creates.BRANCHES:
        return route(*branches_of(plan, step))
    if step.type.creates is Creates.BATCHES:
        return batched(2)
    schema = step.for_each.result_schema if step.for_each is not None else step.result_schema
    try:
        if step.wait is not None and step.wait.get("on") == "person":
            form = {} if step.wait["form"] is None else sample(step.wait["form"])
            votes = [decided(by=f"person {n + 1}", form=form).calls for n in range(step.wait["quorum"])]
            return Mock(tuple(call for calls in votes for call in calls))
        if step.wait is not None and not step.type.starts_children:
            arriving = event(sample(step.wait["events"][0]["schema"]))
            return Mock(arriving.calls * step.wait["count"])
        return sample(schema)
    except ValueError as error:
        message = f"no small value fits the result_schema of {step.name!r}: {error}"
        raise UsageError(message, hint=f"mock it: --mock '{step.name}={{...}}'") from None
