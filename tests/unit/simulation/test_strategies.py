"""Strategies draw what schemas allow, and all of it fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from tasker.errors import UsageError
from tasker.simulation.simulate import simulate
from tasker.template.compile import compile_text
from tasker.template.schema_check import check_result
from tasker.testing.strategies import from_schema, inputs_of, results_of

(PLAN,) = compile_text("""
name: drawn
namespace: shop
version: 1.0.0
input_schema:
  type: object
  required: [amount, code]
  properties:
    amount: {type: integer, minimum: 1, exclusiveMaximum: 100}
    code: {type: string, pattern: '^[A-Z]{2}-[0-9]{3}$'}
    note: {type: [string, 'null'], maxLength: 3}
steps:
  - name: price
    handler: shop.price
    result_schema: {type: object, required: [total], properties: {total: {type: number, minimum: 0}}}
  - name: route
    type: decision
    dependencies: [price]
    rules: [{when: steps.price.total > 100.0, then: [review]}, {else: []}]
  - {name: review, dependencies: [route], handler: shop.review}
""").plans

SCHEMAS: list[dict[str, Any]] = [
    {"enum": [1, "a", None]},
    {"const": {"a": 1}},
    {"type": "integer", "minimum": -3, "maximum": 9, "multipleOf": 3},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "string", "format": "date-time"},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
    {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"], "properties": {"a": {"const": 2}}}]},
    {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "null"}}}]},
    {"type": "integer", "not": {"const": 0}},
    {
        "$defs": {
            "tree": {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
        },
        "$ref": "#/$defs/tree",
    },
]


@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data(), schema=st.sampled_from(SCHEMAS))
def test_drawn_values_fit_their_schemas(data: st.DataObject, schema: dict[str, Any]) -> None:
    assert check_result(schema, data.draw(from_schema(schema))) == []


@settings(max_examples=25)
@given(values=inputs_of(PLAN), price=results_of(PLAN, "price"))
def test_every_order_ends(values: Any, price: Any) -> None:
    run = simulate(PLAN, values, {"price": price}, mock_all=True)
    assert run.status == "complete"
    assert ("review" in run.route) == (price["total"] > 100)


def test_optional_values_are_drawn_and_left_out() -> None:
    assert "note" not in find(inputs_of(PLAN), lambda value: "note" not in value)
    assert find(inputs_of(PLAN), lambda value: value.get("note", "") is None)["note"] is None


def test_step_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="has no step 'prize'"):
        results_of(PLAN, "prize")
