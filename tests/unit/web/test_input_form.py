"""Forms made from schemas, and inputs made from forms."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.server.web.presenters.input_form import Field, fields_of, typed_in

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["amount", "card"],
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "description": "In cents."},
        "rate": {"type": "number"},
        "note": {"type": "string", "maxLength": 2000, "default": "none"},
        "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
        "fast": {"type": "boolean"},
        "card": {"$ref": "#/$defs/card"},
        "lines": {"type": "array", "items": {"type": "object"}},
        "a/b": {"type": "string"},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "$defs": {
        "card": {
            "type": "object",
            "required": ["number"],
            "properties": {"number": {"type": "string", "x-sensitive": True}, "brand": {"type": "string"}},
        }
    },
}


def by_pointer(fields: list[Field]) -> dict[str, Field]:
    return {each.pointer: each for field in fields for each in (field, *field.parts)}


def test_each_property_has_the_field_that_fits_it() -> None:
    found = by_pointer(fields_of(SCHEMA, {}))
    assert {pointer: field.kind for pointer, field in found.items()} == {
        "/amount": "number",
        "/rate": "number",
        "/note": "long",
        "/currency": "choice",
        "/fast": "choice",
        "/card": "group",
        "/card/number": "text",
        "/card/brand": "text",
        "/lines": "json",
        "/a~1b": "text",
        "/either": "json",
    }
    assert found["/amount"].required
    assert (found["/amount"].hint, found["/amount"].description) == ("a whole number, at least 1", "In cents.")
    assert (found["/note"].value, found["/currency"].value) == ("none", '"EUR"')
    assert found["/card/number"].secret
    assert found["/fast"].choices == ["true", "false"]


def test_what_is_typed_is_read_as_its_schema_says() -> None:
    typed = {
        "/amount": "12",
        "/rate": "1.5",
        "/note": " 7 ",
        "/currency": '"USD"',
        "/fast": "false",
        "/card/number": "4711",
        "/lines": '[{"sku": 1}]',
        "/a~1b": "slash",
        "/either": '"x"',
    }
    assert typed_in(SCHEMA, typed).context == {
        "amount": 12,
        "rate": 1.5,
        "note": "7",
        "currency": "USD",
        "fast": False,
        "card": {"number": "4711"},
        "lines": [{"sku": 1}],
        "a/b": "slash",
        "either": "x",
    }


def test_what_is_left_empty_is_left_out_and_a_number_that_is_none_stays_for_the_validator() -> None:
    found = typed_in(SCHEMA, {"/amount": "much", "/card/number": "", "/lines": "[1,"})
    assert found.context["amount"] == "much"
    assert found.context["card"] == {}
    assert found.problems == {"/lines": "not JSON: Expecting value at line 1, column 4"}


@pytest.mark.parametrize("schema", [None, {"type": "object"}, {"oneOf": [{"type": "object"}]}, {"$ref": "#/$defs/x"}])
def test_an_input_that_no_form_shows_is_json(schema: dict[str, Any] | None) -> None:
    (field,) = fields_of(schema, {})
    assert (field.pointer, field.kind) == ("", "json")
    assert typed_in(schema, {"": '{"a": 1}'}).context == {"a": 1}
    assert typed_in(schema, {}).context == {}
    assert typed_in(schema, {"": "[1]"}).problems == {"": "expected an object"}
    assert "line 1, column 2" in typed_in(schema, {"": "{"}).problems[""]


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop = {"type": "object", "properties": {"x": {"$ref": "#"}}}
    (field,) = fields_of(loop, {})
    deepest = field
    while deepest.parts:
        (deepest,) = deepest.parts
    assert deepest.kind == "json"
    assert fields_of({"$ref": "#/a", "a": {"$ref": "#/a"}}, {})[0].kind == "json"
