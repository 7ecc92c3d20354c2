"""Hypothesis strategies from the schemas of a template. Hypothesis does not come with Tasker.

They draw from the part of JSON Schema that templates use: types, `enum`, `const`, bounds, lengths, `pattern`, formats,
arrays, objects, `anyOf`, `oneOf`, `allOf` and `$ref`. Every value is checked against its schema; those that do not fit
the rest of it (such as `not`) are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasker.errors import UsageError
from tasker.simulation.samples import FORMATS, referred
from tasker.simulation.simulate import workflow_of
from tasker.template.plan import Plan, StepPlan
from tasker.template.schema_check import check_result

try:
    from hypothesis import strategies as st
except ImportError:
    raise UsageError("hypothesis is not installed", hint="pip install hypothesis") from None

Target = str | Path | Plan
Strategy = st.SearchStrategy[Any]
MOST_DEPTH = 4
"""Levels of optional parts of a schema that refers to itself."""
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)


def inputs_of(target: Target, template: str | None = None) -> Strategy:
    """Return a strategy of inputs that fit the `input_schema` of a template: a file, a folder or a compiled plan."""
    return from_schema(_plan(target, template).input_schema or {"type": "object"})


def results_of(target: Target, step: str, template: str | None = None) -> Strategy:
    """Return a strategy of results that fit the `result_schema` of a step; of a step with `for_each`, of one item.

    Raises `UsageError` for a step that the template does not have.
    """
    plan = _plan(target, template)
    if step not in plan.by_name:
        raise UsageError(
            f"{plan.namespace}/{plan.name} has no step {step!r}", hint=f"its steps: {', '.join(plan.by_name)}"
        )
    return from_schema(_result_schema(plan.by_name[step]) or {"type": "object"})


def from_schema(schema: Mapping[str, Any]) -> Strategy:
    """Return a strategy of values that fit a JSON Schema."""
    return _values(schema, schema, 0).filter(lambda value: not check_result(schema, value))


def _plan(target: Target, template: str | None) -> Plan:
    return target if isinstance(target, Plan) else workflow_of(target, template).plan


def _result_schema(step: StepPlan) -> Mapping[str, Any] | None:
    return step.for_each.result_schema if step.for_each is not None else step.result_schema


def _values(schema: Any, root: Mapping[str, Any], depth: int) -> Strategy:
    if not isinstance(schema, Mapping):
        return SCALARS
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if isinstance(reference := schema.get("$ref"), str):
        return st.deferred(lambda: _values(referred(root, reference), root, depth + 1))
    for several in ("anyOf", "oneOf"):
        if schema.get(several):
            rest = {key: value for key, value in schema.items() if key != several}
            return st.one_of([_values(_merged(rest, each), root, depth) for each in schema[several]])
    if schema.get("allOf"):
        whole = {key: value for key, value in schema.items() if key != "allOf"}
        for each in schema["allOf"]:
            whole = _merged(whole, each)
        return _values(whole, root, depth)
    kinds = schema.get("type", "object" if "properties" in schema or "required" in schema else None)
    if kinds is None:
        return SCALARS
    return st.one_of([_typed(kind, schema, root, depth) for kind in ([kinds] if isinstance(kinds, str) else kinds)])


def _merged(schema: Mapping[str, Any], other: Any) -> dict[str, Any]:
    """Return a schema with the keywords of both; properties and required ones are joined."""
    if not isinstance(other, Mapping):
        return dict(schema)
    merged = {**schema, **other}
    if "properties" in schema and "properties" in other:
        merged["properties"] = {**schema["properties"], **other["properties"]}
    if "required" in schema and "required" in other:
        merged["required"] = [*schema["required"], *other["required"]]
    return merged


def _typed(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Strategy:
    match kind:
        case "object":
            return _objects(schema, root, depth)
        case "array":
            return _arrays(schema, root, depth)
        case "string":
            return _texts(schema)
        case "integer":
            return _integers(schema)
        case "number":
            return _numbers(schema)
        case "boolean":
            return st.booleans()
    return st.none()


def _objects(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Strategy:
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    needed = {name: _values(properties.get(name, {}), root, depth + 1) for name in sorted(required)}
    if depth >= MOST_DEPTH:
        return st.fixed_dictionaries(needed)
    names = [name for name in properties if name not in required]
    optional = {name: _values(properties[name], root, depth + 1) for name in names}
    return st.fixed_dictionaries(needed, optional=optional)


def _arrays(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Strategy:
    least = schema.get("minItems", 0)
    most = least if depth >= MOST_DEPTH else min(schema.get("maxItems", least + 5), least + 5)
    first = schema.get("prefixItems")
    if first:
        return st.tuples(*(_values(each, root, depth + 1) for each in first)).map(list)
    items = _values(schema.get("items", {}), root, depth + 1)
    unique = repr if schema.get("uniqueItems") else None
    return st.lists(items, min_size=least, max_size=most, unique_by=unique)


def _texts(schema: Mapping[str, Any]) -> Strategy:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" in schema:
        texts: Strategy = st.from_regex(schema["pattern"])
        return texts.filter(lambda text: least <= len(text) <= (len(text) if most is None else most))
    match schema.get("format"):
        case "date-time":
            return st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat())
        case "date":
            return st.dates().map(str)
        case "email":
            return st.emails()
        case "uuid":
            return st.uuids().map(str)
        case str() as form if form in FORMATS:
            return st.just(FORMATS[form])
    characters = st.characters(codec="utf-8", exclude_characters="\0")
    return st.text(characters, min_size=least, max_size=least + 30 if most is None else most)


def _integers(schema: Mapping[str, Any]) -> Strategy:
    step = schema.get("multipleOf", 1)
    least, most = schema.get("minimum"), schema.get("maximum")
    if (above := schema.get("exclusiveMinimum")) is not None:
        least = int(above // 1) + 1
    if (below := schema.get("exclusiveMaximum")) is not None:
        most = -int(-below // 1) - 1
    low = -(2**53) if least is None else -int(-least // 1)
    high = max(low, 2**53) if most is None else int(most // 1)
    if not isinstance(step, int) or step == 1:
        return st.integers(low, high)
    return st.integers(-(-low // step), high // step).map(lambda number: number * step)


def _numbers(schema: Mapping[str, Any]) -> Strategy:
    if "multipleOf" in schema:
        return _integers(schema)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return st.floats(
        min_value=above if above is not None else schema.get("minimum"),
        max_value=below if below is not None else schema.get("maximum"),
        exclude_min=above is not None,
        exclude_max=below is not None,
        allow_nan=False,
        allow_infinity=False,
        width=64,
    )
