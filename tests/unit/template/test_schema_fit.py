"""Whether every value of one JSON Schema fits another one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tasker.template.schema_check import check_result
from tasker.template.schema_fit import differences, fits
from tasker.template.schema_misfits import Misfit

NAMES = ("a", "b", "c")
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, 1.5, -1, "", "x", "xy", "2026-01-01"]


def obj(required: str = "", rest: Any = None, **fields: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": fields, "required": required.split()}
    return schema if rest is None else {**schema, "additionalProperties": rest}


INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
ORDER = obj("id lines", id=STR, lines={"type": "array", "items": obj("sku", sku=STR, price=NUM)})
LIMITS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
LISTED = {
    "$defs": {
        "n": {"anyOf": [INT, {"$ref": "#/$defs/list"}]},
        "list": {"type": "array", "items": {"$ref": "#/$defs/n"}},
    }
}

FITTING = [
    (INT, NUM),
    (obj("a b", a=INT, b=STR), obj("a", a=NUM)),
    (obj("a", a={"enum": ["x"]}), obj("a", a={"enum": ["x", "y"], "title": "A"})),
    (obj("a", a=INT, rest=False), obj("a", a=INT, b=STR, rest=False)),
    ({"type": ["integer", "null"]}, {"anyOf": [INT, {"type": "null"}]}),
    ({"type": "boolean"}, {"enum": [True, False]}),
    ({"type": "integer", "minimum": 1}, {"type": "number", "exclusiveMinimum": 0}),
    ({"type": "string", "minLength": 2, "maxLength": 3}, {"type": "string", "maxLength": 5}),
    ({"type": "array", "items": INT, "maxItems": 0}, {"type": "array", "items": STR}),
    ({"$ref": "#/$defs/n", **LISTED}, {"anyOf": [NUM, {"type": "array"}]}),
    ({**LISTED, "$ref": "#/$defs/list"}, {**LISTED, "$ref": "#/$defs/n", "title": "numbers"}),
    ({"allOf": [obj("a", a=INT), obj("b", b=INT)]}, obj("b", b=INT)),
    ({"const": {"a": 1}}, obj("a", a=INT)),
    (obj("a", a=INT), {}),
    (None, None),
]
DIFFERENT = [
    (NUM, INT, Misfit.TYPE, "$"),
    (ORDER, obj("id lines", id=STR, lines={"type": "array", "items": obj("sku price", sku=STR, price=NUM)}),
     Misfit.OPTIONAL, "$.lines[*].price"),
    (ORDER, obj("nr", nr=STR), Misfit.MISSING, "$.nr"),
    (ORDER, obj("id", id=INT), Misfit.TYPE, "$.id"),
    (obj("a", a={"enum": ["x", "y"]}), obj("a", a={"enum": ["x"]}), Misfit.VALUES, "$.a"),
    (obj("a", a=STR), obj("a", a={"enum": ["x"]}), Misfit.VALUES, "$.a"),
    (obj("a", a=STR), obj("a", a={"anyOf": [INT, {"type": "null"}]}), Misfit.TYPE, "$.a"),
    (obj("a", a=STR, rest=False), obj("", rest=False), Misfit.REFUSED, "$.a"),
    (obj("a", a=STR), obj("a", a=STR, rest=False), Misfit.CLOSED, "$"),
    (obj("a", a=STR), obj("a", a=STR, b=STR), Misfit.UNLISTED, "$.b"),
    (obj("a", a={}), obj("a", a=STR), Misfit.UNDESCRIBED, "$.a"),
    (None, ORDER, Misfit.UNDESCRIBED, "$"),
    (STR, {"type": "string", "format": "date"}, Misfit.BOUNDS, "$"),
    ({"type": "integer", "minimum": 0}, {"type": "integer", "exclusiveMinimum": 0}, Misfit.BOUNDS, "$"),
    (NUM, {"type": "number", "multipleOf": 2}, Misfit.BOUNDS, "$"),
    ({"type": "array", "items": INT}, {"type": "array", "items": INT, "minItems": 1}, Misfit.BOUNDS, "$"),
    (STR, {"not": {"const": "x"}}, Misfit.UNDECIDED, "$"),
    (INT, {"$ref": "https://example.com/schema"}, Misfit.UNDECIDED, "$"),
    (INT, {"oneOf": [INT, NUM]}, Misfit.UNDECIDED, "$"),
]  # fmt: skip


@pytest.mark.parametrize(("producer", "consumer"), FITTING)
def test_a_narrower_schema_fits(producer: Any, consumer: Any) -> None:
    assert differences(producer, consumer) == ()


@pytest.mark.parametrize(("producer", "consumer", "misfit", "path"), DIFFERENT)
def test_a_difference_has_its_reason_and_place(producer: Any, consumer: Any, misfit: Misfit, path: str) -> None:
    assert [(found.misfit, found.path) for found in differences(producer, consumer)] == [(misfit, path)]


def test_a_schema_without_end_is_undecided() -> None:
    endless = {"$ref": "#"}
    assert [found.misfit for found in differences(STR, endless)] == [Misfit.UNDECIDED]


def test_a_wide_pair_of_schemas_ends() -> None:
    wide: dict[str, Any] = {"$defs": {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 8} for n in range(30)}}
    wide["$defs"]["30"] = INT
    assert differences({**wide, "$ref": "#/$defs/0"}, STR)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any] | bool:
    kinds = ["integer", "number", "string", "scalar types", "enum", "free", "null"]
    kind = draw(st.sampled_from([*kinds, *(["object", "array", "any", "all", "one"] if depth else [])]))
    below = schemas(depth - 1)
    match kind:
        case "integer" | "number":
            limits = draw(st.dictionaries(st.sampled_from(LIMITS), st.integers(-1, 3), max_size=2))
            return {"type": kind, **limits, **draw(st.sampled_from([{}, {}, {"multipleOf": 2}, {"multipleOf": 1}]))}
        case "string":
            limits = draw(st.dictionaries(st.sampled_from(["minLength", "maxLength"]), st.integers(0, 3)))
            return {"type": "string", **limits, **draw(st.sampled_from([{}, {}, {"format": "date"}, {"pattern": "x"}]))}
        case "scalar types":
            return {
                "type": draw(
                    st.lists(st.sampled_from(["integer", "string", "null", "boolean"]), unique=True, min_size=1)
                )
            }
        case "enum":
            values = draw(st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3))
            return draw(st.sampled_from([{"enum": values}, {"const": values[0]}, {"type": "integer", "enum": values}]))
        case "object":
            fields = draw(st.dictionaries(st.sampled_from(NAMES), below, max_size=3))
            schema: dict[str, Any] = {"type": "object", "properties": fields}
            schema["required"] = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))
            if draw(st.booleans()):
                schema["additionalProperties"] = draw(st.one_of(st.booleans(), below))
            more = [{}, {}, {"minProperties": 1}, {"maxProperties": 2}, {"propertyNames": {"maxLength": 1}}]
            return {**schema, **draw(st.sampled_from([*more, {"patternProperties": {"^[ab]": {"type": "integer"}}}]))}
        case "array":
            limits = draw(st.dictionaries(st.sampled_from(["minItems", "maxItems"]), st.integers(0, 2)))
            more = draw(st.sampled_from([{}, {}, {"uniqueItems": True}, {"contains": {"type": "integer"}}]))
            return {"type": "array", "items": draw(below), **limits, **more}
        case "any" | "all" | "one":
            parts = draw(st.lists(below, min_size=1, max_size=3))
            beside = draw(st.sampled_from([{}, {}, {"type": "object"}, {"minimum": 1}, {"title": "x"}]))
            return {f"{kind}Of": parts, **beside}
        case "null":
            return {"type": "null"}
    return draw(st.sampled_from([True, False, {}, {"minimum": 1}, {"not": {"type": "string"}}]))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two schemas, of which the second is often the first one with a part changed: such pairs fit more often."""
    producer = draw(schemas())
    if draw(st.integers(0, 2)) == 0 or not isinstance(producer, dict):
        return producer, draw(schemas())
    consumer = dict(producer)
    for _ in range(draw(st.integers(1, 2))):
        match draw(st.sampled_from(["drop", "wider", "any", "field"])):
            case "drop" if consumer:
                consumer.pop(draw(st.sampled_from(sorted(consumer))))
            case "wider":
                consumer = {"anyOf": [consumer, draw(schemas(1))]}
            case "any":
                consumer = {"allOf": [consumer, draw(schemas(1))]}
            case "field" if isinstance(consumer.get("properties"), dict):
                fields = {**consumer["properties"], draw(st.sampled_from(NAMES)): draw(schemas(1))}
                consumer = {**consumer, "properties": fields}
    return producer, consumer


def values(depth: int = 2) -> st.SearchStrategy[Any]:
    scalars = st.sampled_from(SCALARS)
    if not depth:
        return scalars
    below = values(depth - 1)
    objects = st.dictionaries(st.sampled_from([*NAMES, "zz"]), below, max_size=3)
    return st.one_of(scalars, objects, st.lists(below, max_size=3))


@st.composite
def values_near(draw: st.DrawFn, schema: Any) -> Any:
    """Value that often fits the schema."""
    if not isinstance(schema, dict) or draw(st.integers(0, 9)) == 0:
        return draw(values())
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return draw(values_near(draw(st.sampled_from(schema[key]))))
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    match schema.get("type"):
        case "object":
            names = {*schema["required"], *draw(st.sets(st.sampled_from([*NAMES, "zz"]), max_size=2))}
            rest = schema.get("additionalProperties", True)
            return {name: draw(values_near(schema["properties"].get(name, rest))) for name in sorted(names)}
        case "array":
            return draw(st.lists(values_near(schema["items"]), max_size=3))
        case "integer" | "number":
            return draw(st.sampled_from([0, 1, 2, 3, -1, 1.5, 4, 2.0]))
        case "string":
            return draw(st.sampled_from(["", "x", "xy", "xyz", "2026-01-01"]))
    return draw(values())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_value_of_a_fitting_producer_validates(data: st.DataObject) -> None:
    producer, consumer = data.draw(pairs())
    if not fits(producer, consumer):
        return
    note(f"{producer} fits {consumer}")
    schema = {"allOf": [producer]}
    for _ in range(6):
        value = data.draw(values_near(producer))
        if not check_result(schema, value):
            assert check_result({"allOf": [consumer]}, value) == []
