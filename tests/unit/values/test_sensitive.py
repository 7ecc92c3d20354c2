"""What a schema marks with `x-sensitive` is hidden wherever it stands; what is not marked stays."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.redaction import LONGEST_SEARCHED, MOST_SECRETS, REDACTED, Redactor, has_sensitive, without_secrets
from tasker.template import compile_text

SECRET: dict[str, Any] = {"type": "string", "x-sensitive": True}
TEMPLATE = """
name: w
namespace: n
version: 1.0.0
steps:
  - {name: plain, handler: h}
  - {name: own, handler: h, result_schema: {properties: {pin: {x-sensitive: true}}}}
"""


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"a": SECRET}}, {"a": "hidden", "b": "b"}, {"a": REDACTED, "b": "b"}),
        ({"x-sensitive": True}, {"a": ["hidden"]}, REDACTED),
        ({"x-sensitive": "yes"}, "hidden", REDACTED),
        ({"x-sensitive": False}, "shown", "shown"),
        ({"items": {"properties": {"a": SECRET}}}, [{"a": "hidden"}, {"b": 1}], [{"a": REDACTED}, {"b": 1}]),
        ({"prefixItems": [{}, SECRET], "items": {}}, ["x", "hidden", "y"], ["x", REDACTED, "y"]),
        ({"properties": {"b": {}}, "additionalProperties": SECRET}, {"a": "hidden", "b": 1}, {"a": REDACTED, "b": 1}),
        ({"properties": {"b": {}}, "patternProperties": {"^a": SECRET}}, {"a": "h", "b": 1}, {"a": REDACTED, "b": 1}),
        ({"anyOf": [{"type": "null"}, {"properties": {"a": SECRET}}]}, {"a": "hidden"}, {"a": REDACTED}),
        ({"if": {}, "then": {"properties": {"a": SECRET}}}, {"a": "hidden"}, {"a": REDACTED}),
        ({"properties": {"a": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": SECRET}}, {"a": "hidden"}, {"a": REDACTED}),
        (
            {"properties": {"next": {"$ref": "#"}, "a": SECRET}},
            {"next": {"next": {"a": "hidden"}, "a": "hidden"}},
            {"next": {"next": {"a": REDACTED}, "a": REDACTED}},
        ),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x", "x-sensitive": True}}}, "hidden", REDACTED),
        ({"$ref": "#/nowhere", "properties": {"a": SECRET}}, {"a": None}, {"a": REDACTED}),
        ({"properties": {"a": True, "b": SECRET}, "items": False}, {"a": 1}, {"a": 1}),
    ],
)
def test_what_is_marked_is_hidden_and_nothing_else(schema: dict[str, Any], value: Any, expected: Any) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    object.__setattr__(plan, "input_schema", schema)

    assert Redactor(plan).context(value) == expected


def test_a_message_says_nothing_that_is_hidden_however_it_came_there() -> None:
    (plan,) = compile_text(TEMPLATE).plans
    veil = Redactor(plan, {"a": "open"}, {"own": {"pin": 987654, "a": "open"}, "plain": {"pin": 7777}})

    failure = {"name": "own", "result": {"pin": 987654}, "failures": [{"message": "PIN 987654 is open to 7777"}]}
    assert veil.redact(failure) == {
        "name": "own",
        "result": {"pin": REDACTED},
        "failures": [{"message": f"PIN {REDACTED} is open to 7777"}],
    }
    schema = plan.steps[1].result_schema
    assert schema is not None
    assert without_secrets("12 is not a text", schema, {"pin": 12}) == f"{REDACTED} is not a text"


def test_error_codes_are_shown_unless_they_are_a_sensitive_value() -> None:
    (plan,) = compile_text(TEMPLATE).plans
    veil = Redactor(plan, {}, {"own": {"pin": 1001}})
    failure = {"error_code": "CARD_1001_REFUSED", "error_type": "refused_1001", "message": "1001 was refused"}

    assert veil.redact([failure]) == [{**failure, "message": f"{REDACTED} was refused"}]
    assert veil.redact({"error_code": "1001"}) == {"error_code": REDACTED}


def test_where_very_many_values_are_hidden_nothing_is_said_of_failures_at_all() -> None:
    (plan,) = compile_text(TEMPLATE).plans
    object.__setattr__(plan, "input_schema", {"additionalProperties": SECRET})
    context = {f"key {number}": f"secret {number}" for number in range(MOST_SECRETS + 1)}
    failure = {"message": "secret 7", "attempt": 1, "metadata": {"card": ["secret 8"]}}

    told = Redactor(plan, context).redact({"name": "plain", "state": "error", "failures": [failure], "error": failure})

    hidden = {"message": REDACTED, "attempt": 1, "metadata": {"card": [REDACTED]}}
    assert told == {"name": "plain", "state": "error", "failures": [hidden], "error": hidden}


TASK = "0191d5a4-0007-7000-8000-000000001007"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("at secret-0007", REDACTED),
        ("secret-0007", REDACTED),
        ("at step 7 of 9", "at step 7 of 9"),
        ("x" * (LONGEST_SEARCHED + 1), REDACTED),
        (["to secret-0100", 7, None], [REDACTED, 7, None]),
        ({"cursor": "secret-0007:12", "items": 3}, {"cursor": REDACTED, "items": 3}),
        ({"error_code": "secret-0007", "error_type": "secret-0008"}, {"error_code": REDACTED, "error_type": REDACTED}),
        ({"error_code": "CARD_secret-0007"}, {"error_code": "CARD_secret-0007"}),
        ({"error": {"name": "for secret-0007", "step": "pay"}}, {"error": {"name": REDACTED, "step": "pay"}}),
        ({"metadata": {"error_code": "secret-0007", "at": "x"}}, {"metadata": {"error_code": REDACTED, "at": "x"}}),
        ({"name": "plain", "result": {"sent": "secret-0007"}}, {"name": "plain", "result": {"sent": REDACTED}}),
        ({"task_uuid": TASK, "status": "error"}, {"task_uuid": TASK, "status": "error"}),
        (f"1007 of {TASK}", REDACTED),
    ],
)
def test_texts_with_one_of_very_many_values_are_withheld(answer: Any, expected: Any) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    object.__setattr__(plan, "input_schema", {"additionalProperties": SECRET})
    context = {f"key {number}": f"secret-{number:04}" for number in range(MOST_SECRETS + 1)} | {"pin": 1007}

    assert Redactor(plan, context).redact(answer) == expected


def test_an_instance_is_covered_as_any_step_that_is_made_while_the_task_runs() -> None:
    (plan,) = compile_text(TEMPLATE).plans
    object.__setattr__(plan.steps[1], "static", False)

    assert Redactor(plan).result("own_0001", {"pin": 1, "a": 2}) == {"pin": REDACTED, "a": 2}
    assert Redactor(plan).result("plain", {"pin": 1}) == {"pin": 1}


def test_a_template_without_marks_needs_no_veil() -> None:
    (marked,) = compile_text(TEMPLATE).plans
    (plain,) = compile_text(TEMPLATE.replace("x-sensitive", "x-other")).plans
    assert (has_sensitive(marked), has_sensitive(plain)) == (True, False)
