"""Checking a value against a schema ends, whatever both are: patterns, equal items, alternatives of alternatives."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.template.schema_check import check_result
from tasker.template.schema_limits import value_formats

EXPLODES = "^(a+)+$"
LONG = "a" * 5000 + "!"
DRAFTS = [f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", "2020-12")]


def problems(schema: dict[str, Any], value: Any, **bound: int) -> list[str]:
    return [str(problem) for problem in check_result(schema, value, **bound)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": EXPLODES}, LONG),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": EXPLODES}}}, LONG),
        ({"$schema": DRAFTS[1], "items": {"$ref": "#"}, "pattern": EXPLODES}, [LONG]),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"$ref": "#"}, "pattern": EXPLODES}, [LONG]),
        ({"propertyNames": {"pattern": EXPLODES}}, {LONG: 1}),
        ({"patternProperties": {EXPLODES: True}, "additionalProperties": False}, {LONG: 1}),
        ({"patternProperties": {EXPLODES: {"type": "integer"}}, "additionalProperties": {"type": "null"}}, {LONG: 1}),
        *(({"$schema": draft, "unevaluatedItems": {"pattern": EXPLODES}}, [LONG]) for draft in DRAFTS),
    ],
)
def test_no_keyword_matches_a_pattern_in_more_than_linear_time(schema: dict[str, Any], value: Any) -> None:
    assert problems(schema, value)


def test_a_pattern_that_cannot_be_used_is_a_problem_of_the_schema() -> None:
    (problem,) = problems({"pattern": "(?=a)"}, "a")
    assert problem.startswith("$: the schema cannot be used: the pattern (?=a)")


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True, "1", None, 0, False, [], {}, [1], {"a": 1}, 0.5], True),
        ([1, 1.0], False),
        ([{"a": [1, {"b": 2}], "c": 3}, {"c": 3.0, "a": [1, {"b": 2}]}], False),
        ([{"a": True}, {"a": 1}], True),
        ([["list"], ["list", "list"]], True),
        ([{"n": n} for n in range(20_000)], True),
        ([n * (2**61 - 1) for n in range(20_000)], True),
    ],
)
def test_items_are_told_apart_as_json_schema_says_and_in_linear_time(items: list[Any], unique: bool) -> None:
    assert (problems({"uniqueItems": True}, items) == []) is unique


def test_a_long_enum_is_looked_up_and_not_searched() -> None:
    schema = {"items": {"enum": [{"n": n} for n in range(2000)] + [1, "1"]}}
    assert problems(schema, [{"n": n % 2000} for n in range(20_000)] + [1.0, "1"]) == []
    assert problems(schema, [True])


ALTERNATIVES = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "anyOf": [
                {"properties": {"op": {"const": op}, "arg": {"$ref": "#/$defs/node"}}, "required": ["op"]}
                for op in ("and", "or", "not")
            ]
        }
    },
}


def nested(depth: int) -> dict[str, Any]:
    return {"op": "not", "arg": nested(depth - 1)} if depth else {"op": "not"}


def test_alternatives_that_refer_to_themselves_are_given_up_after_so_many_steps() -> None:
    assert problems(ALTERNATIVES, nested(4)) == []

    assert problems(ALTERNATIVES, nested(60), most_work=20_000) == [
        "$: the schema cannot be used: checking this value takes more than 20000 steps"
    ]


@pytest.mark.parametrize("keyword", ["unevaluatedItems", "unevaluatedProperties"])
def test_what_is_compared_with_everything_counts_by_the_square(keyword: str) -> None:
    schema = {"contains": {"type": "integer"}, "properties": {"a": {}}, keyword: {"type": "integer"}}
    value: Any = list(range(1000)) if keyword == "unevaluatedItems" else {str(n): n for n in range(1000)}

    assert problems(schema, value, most_work=20_000) == []
    assert "takes more than 5000 steps" in problems(schema, value, most_work=5_000)[0]


def test_of_many_problems_the_first_are_told() -> None:
    found = problems({"items": {"type": "null"}}, [1] * 5000)
    assert len(found) == 101
    assert found[0] == "$: there are more problems than these 100"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("(?:a|b|c|d)" * 90_000, id="long"),
        pytest.param(r"\w{1000}", id="large"),
        pytest.param("(" * 5000, id="deep"),
        pytest.param("(?=a)", id="look-around"),
        pytest.param("[", id="wrong"),
    ],
)
def test_a_regex_in_a_value_is_read_by_the_engine_of_patterns(value: str) -> None:
    (problem,) = problems({"format": "regex"}, value)
    assert "cannot be used" in problem


def test_regexes_in_a_value_are_read_until_the_check_has_taken_too_much() -> None:
    schema = {"items": {"format": "regex"}}
    assert problems(schema, [f"^[a-z]+-{n}$" for n in range(10_000)]) == []

    (problem,) = problems(schema, [r"\w{900}" + str(n) for n in range(100)], most_work=1_000_000)
    assert "takes more than 1000000 steps" in problem


@pytest.mark.parametrize("draft", [3, 4, 7])
def test_no_format_of_a_value_is_checked_by_what_happens_to_be_installed(draft: int) -> None:
    """Such packages bring patterns of their own, and another process may have none."""
    from jsonschema.validators import validator_for

    dialect = validator_for({"$schema": f"http://json-schema.org/draft-0{draft}/schema#"})
    checker = dialect.FORMAT_CHECKER
    checker.checkers["hostname"] = (lambda value: False, ())
    try:
        value_formats.cache_clear()
        assert "hostname" not in value_formats(dialect).checkers
    finally:
        del checker.checkers["hostname"]
        value_formats.cache_clear()
    assert {"email", "regex"} <= value_formats(dialect).checkers.keys()
