"""Types of expressions, read from JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tasker.dataclasses import dataclass

_DEEPEST = 20
"""Depth below which a schema counts as `ANY`; a schema may refer to itself."""


@dataclass(frozen=True, slots=True)
class Type:
    """Set of values. An object lists its `fields`; `rest` is the type of all others, None if there are none."""

    name: str
    item: Type | None = None
    fields: Mapping[str, Type] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    rest: Type | None = None
    members: tuple[Type, ...] = ()
    """Alternatives of a union."""
    values: tuple[Any, ...] | None = None
    """All possible values, if the schema lists them."""

    def __str__(self) -> str:
        if self.name == "union":
            return " or ".join(dict.fromkeys(map(str, self.members)))
        return f"list of {self.item}" if self.name == "list" and self.item != ANY else self.name

    @property
    def alternatives(self) -> tuple[Type, ...]:
        """The members of a union, or the type itself."""
        return self.members or (self,)

    def may_be(self, *names: str) -> bool:
        """True if some value of the type has one of these types, or if nothing is known."""
        return any(member.name in names or member.name == "anything" for member in self.alternatives)


ANY = Type("anything")
NULL, BOOL, INT, DOUBLE, NUMBER, STRING = (Type(name) for name in ("null", "bool", "int", "double", "number", "string"))
NUMBERS = ("int", "double", "number")
SCALARS = ("bool", "string", *NUMBERS)
_BY_NAME = {"null": NULL, "boolean": BOOL, "integer": INT, "number": NUMBER, "string": STRING}
_BY_VALUE = {bool: BOOL, int: INT, float: DOUBLE, str: STRING, type(None): NULL}


def list_of(item: Type) -> Type:
    """Return the type of a list."""
    return Type("list", item=item)


def object_of(fields: Mapping[str, Type]) -> Type:
    """Return the type of an object that has exactly these fields."""
    return Type("object", fields=fields, required=frozenset(fields))


def union(*types: Type) -> Type:
    """Return the type of a value of one of these types."""
    members = [member for type_ in types for member in type_.alternatives]
    if ANY in members or not members:
        return ANY
    different = [member for number, member in enumerate(members) if member not in members[:number]]
    return different[0] if len(different) == 1 else Type("union", members=tuple(different))


def fits(given: Type, expected: Type) -> bool:
    """Return False if no value of `given` can be taken for one of `expected`, whether as it is or read from text."""
    return any(_takes(type_, other) for type_ in given.alternatives for other in expected.alternatives)


def _takes(given: Type, expected: Type) -> bool:
    if "anything" in (given.name, expected.name) or given.name == expected.name:
        return True
    return expected.name in ("bool", *NUMBERS) and given.name in SCALARS


def type_of_literal(value: Any) -> Type:
    """Return the type of a scalar, without the value: another version of the template may have another one."""
    return _BY_VALUE.get(type(value), ANY)


def type_of_schema(schema: Any) -> Type:
    """Return the type of the values that fit a JSON Schema; `ANY` for what the types do not express.

    A list of `properties` without a word about others counts as complete, as for `listed_properties`.
    """
    return _of_schema(schema, schema, 0)


def _of_schema(schema: Any, root: Any, depth: int) -> Type:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ANY
    if "$ref" in schema:
        return _of_reference(schema["$ref"], root, depth)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            alternatives = schema[key] if isinstance(schema[key], list) else []
            return union(*(_of_schema(part, root, depth + 1) for part in alternatives))
    if "const" in schema or "enum" in schema:
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        return _of_values(values if isinstance(values, list) else [])
    if "allOf" in schema:
        return ANY
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        return union(*(_of_schema({**schema, "type": each}, root, depth) for each in kind))
    if kind == "object":
        return _of_object(schema, root, depth)
    if kind == "array":
        return list_of(_of_schema(schema.get("items"), root, depth + 1))
    return _BY_NAME.get(kind, ANY) if isinstance(kind, str) else ANY


def _of_reference(reference: Any, root: Any, depth: int) -> Type:
    target = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        return ANY
    for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return _of_schema(target, root, depth + 1)


def _of_values(values: list[Any]) -> Type:
    types = [Type(_BY_VALUE[type(value)].name, values=(value,)) for value in values if type(value) in _BY_VALUE]
    if len(types) < len(values) or not types:
        return ANY
    if len({type_.name for type_ in types}) == 1:
        return Type(types[0].name, values=tuple(values)) if types[0].name != "null" else NULL
    return union(*types)


def _of_object(schema: Mapping[str, Any], root: Any, depth: int) -> Type:
    properties = schema.get("properties")
    listed: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    others = schema.get("additionalProperties", not listed)
    is_open = others is not False or "patternProperties" in schema or "unevaluatedProperties" in schema
    names = schema.get("required")
    required = frozenset(name for name in (names if isinstance(names, list) else ()) if isinstance(name, str))
    return Type(
        "object",
        fields={name: _of_schema(part, root, depth + 1) for name, part in listed.items()},
        required=required,
        rest=_of_schema(others, root, depth + 1) if is_open else None,
    )
