"""Values against JSON Schemas, in words that a person can act on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tasker.template.schema_check import SchemaMismatch, check_input, check_result, prepared
from tests.unit.template.support import plan_of, step, top

ORDER = {
    "type": "object",
    "required": ["id", "items"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": "^ORD-"},
        "tier": {"enum": ["standard", "gold"]},
        "email": {"type": "string", "format": "email"},
        "items": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "properties": {"quantity": {"type": "integer", "minimum": 1}}},
        },
        "paid_by": {"oneOf": [{"const": "card"}, {"type": "object", "required": ["token"]}]},
    },
}
GOOD = {"id": "ORD-1", "items": [{"quantity": 1}]}


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        (GOOD, []),
        ({}, [("$.id", "is required and missing"), ("$.items", "is required and missing")]),
        (5, [("$", "expected an object, found 5")]),
        ({**GOOD, "id": 7}, [("$.id", "expected text, found 7")]),
        ({**GOOD, "id": "x"}, [("$.id", "the text 'x' does not match the pattern ^ORD-")]),
        ({**GOOD, "items": []}, [("$.items", "expected at least 1 items, found 0 items")]),
        (
            {**GOOD, "items": [{"quantity": 1}, {"quantity": 0}]},
            [("$.items[1].quantity", "expected at least 1, found 0")],
        ),
        (
            {**GOOD, "tier": "glod"},
            [("$.tier", "expected one of standard, gold, found the text 'glod'; did you mean `gold`?")],
        ),
        ({**GOOD, "emial": "a@b"}, [("$.emial", "is not a known key; did you mean `email`?")]),
        ({**GOOD, "email": "nobody"}, [("$.email", "the text 'nobody' is not a valid email")]),
        ({**GOOD, "paid_by": {}}, [("$.paid_by.token", "is required and missing")]),
        ({**GOOD, "tier": True, "id": None}, [
            ("$.id", "expected text, found null"),
            ("$.tier", "expected one of standard, gold, found true"),
        ]),
    ],
)  # fmt: skip
def test_every_problem_is_named_with_its_path(value: object, problems: list[tuple[str, str]]) -> None:
    assert [(p.path, p.message) for p in check_result(ORDER, value)] == problems


def test_the_input_of_a_plan_is_checked_against_its_schema() -> None:
    plan = plan_of(top("input_schema: {type: object, required: [id]}"))
    assert check_input(plan, {"id": 1}) == []
    assert check_input(plan, {}) == [SchemaMismatch("$.id", "is required and missing")]


def test_a_plan_without_schema_accepts_everything() -> None:
    assert check_input(plan_of(step("")), ["anything"]) == []


def test_a_problem_reads_as_path_and_message() -> None:
    problem = SchemaMismatch("$.id", "is required and missing")
    assert str(problem) == "$.id: is required and missing"
    assert problem.to_dict() == {"path": "$.id", "message": "is required and missing"}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"$ref": "#"}, "refers to itself without end"),
        ({"$ref": "#/nope"}, "refers to `#/nope`, which does not exist"),
        ({"$ref": "http://127.0.0.1:1/schema.json"}, "which does not exist"),
    ],
)
def test_an_unusable_schema_is_a_problem_and_nothing_is_fetched(schema: dict[str, object], says: str) -> None:
    (problem,) = check_result(schema, {})
    assert says in problem.message


def test_a_long_value_is_shortened() -> None:
    (problem,) = check_result({"type": "integer"}, "x" * 1000)
    assert len(problem.message) < 120


@pytest.mark.parametrize("module", ["tasker.template.schema_check", "tasker.template"])
def test_importing_it_loads_no_heavy_library(module: str) -> None:
    heavy = ("jsonschema", "pydantic_core", "yaml", "click")
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_compiling_a_template_without_schema_does_not_load_jsonschema() -> None:
    code = f"import sys; from tasker.template import compile_text; compile_text({step('')!r}); "
    code += "print([m for m in ('jsonschema', 'pydantic_core') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_schema_is_prepared_once_for_all_values() -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    before = prepared.cache_info().misses
    found = [check_result(schema, {"count": count}) for count in (1, "two", 3, "four")]

    assert [bool(problems) for problems in found] == [False, True, False, True]
    assert prepared.cache_info().misses == before + 1


def test_schemas_that_look_alike_are_told_apart() -> None:
    assert check_result({"const": 1}, 1) == []
    assert [problem.path for problem in check_result({"const": True}, 1)] == ["$"]
