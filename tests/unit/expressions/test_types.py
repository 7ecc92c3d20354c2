"""An expression without a problem fails at run time only for reasons that types do not express."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tasker.expressions.check import Checker
from tasker.expressions.check_scope import CheckScope
from tasker.expressions.evaluation import Expression
from tasker.expressions.types import ANY, Type, fits, type_of_schema
from tasker.expressions.values import EvaluationError
from tests.support.random_expressions import DATA, expressions

UNTYPED = re.compile(
    r"division by zero|does not fit into 64 bits|too large|no position|not an integer|not a number|not a bool"
    r"|JSON cannot hold"
    r"|`%` cannot take|read by a position"  # a number may be a double
)
MIXED = re.compile(r"\[.+, .+\]")
"""A list of values of several types: which of its items an operator cannot take is only found at run time."""
NAMES = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "double": (float,),
    "number": (int, float),
    "string": (str,),
}


def schema_of(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {
            "type": "object",
            "required": [*value],
            "properties": {name: schema_of(item) for name, item in value.items()},
        }
    if isinstance(value, list):
        return {"type": "array", "items": schema_of(value[0]) if value else {"type": "integer"}}
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return {"type": names[type(value)]}


STEPS = {name: type_of_schema({"properties": {}, **schema_of(result)}) for name, result in DATA["steps"].items()}
SCOPE = CheckScope({"input": type_of_schema(schema_of(DATA["input"]))}, STEPS)


def has_type(value: Any, type_: Type) -> bool:
    for member in type_.alternatives:
        if member is ANY or member.name == "anything":
            return True
        if member.name == "list" and isinstance(value, list):
            return member.item is None or all(has_type(item, member.item) for item in value)
        if member.name == "object" and isinstance(value, dict):
            return True
        if type(value) in NAMES.get(member.name, ()):
            return True
    return False


def value_or_error(expression: Expression) -> Any:
    try:
        return expression.evaluate(DATA)
    except EvaluationError as error:
        return error


@given(expressions())
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
def test_checked_expression_fails_only_for_its_values_and_has_its_type(text: str) -> None:
    expression = Expression(text)
    checker = Checker(SCOPE)
    type_ = checker.check(expression.node)
    if checker.problems:
        return
    value = value_or_error(expression)
    if isinstance(value, EvaluationError):
        of_items = re.search("cannot (compare|take)|expects a", value.message) and MIXED.search(text)
        assert of_items or UNTYPED.search(value.message), (text, value.message)
    else:
        assert has_type(value, type_), (text, value, str(type_))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "int or null"),
        ({"enum": [1, 2]}, "int"),
        ({"enum": ["a", None]}, "string or null"),
        ({"const": True}, "bool"),
        ({"type": "array", "items": {"type": "number"}}, "list of number"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or int"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}, "bool"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}}}}, "object"),
        ({"$ref": "https://example.com"}, "anything"),
        ({"allOf": [{"type": "string"}]}, "anything"),
        (True, "anything"),
        ({}, "anything"),
        ({"type": "object", "required": 5, "properties": 7}, "object"),
    ],
)
def test_schema_has_a_type(schema: Any, text: str) -> None:
    assert str(type_of_schema(schema)) == text


def test_value_fits_where_a_model_converts_it() -> None:
    string, integer, text_list = (
        type_of_schema({"type": "string"}),
        type_of_schema({"type": "integer"}),
        type_of_schema({"type": "array"}),
    )
    assert fits(string, integer)
    assert not fits(integer, string)
    assert not fits(text_list, integer)
    assert fits(ANY, string)
