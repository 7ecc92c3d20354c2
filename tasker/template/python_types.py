"""Pydantic models for the input and the results of a template, made of its JSON Schemas.

A model takes every value that fits its schema. What a type cannot say, such as a pattern, it leaves out.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from tasker.template.plan import Plan

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_TAKEN = frozenset(
    {
        *("construct", "copy", "dict", "fields", "from_orm", "json", "schema", "validate", "parse_obj", "parse_raw"),
        *("register", "str", "int", "float", "bool", "list"),
    }
)
"""Names that a model has already, or that its annotations use."""
_DEEPEST = 20


def python_types(plan: Plan) -> str:
    """Return Python code with a model for the input_schema, and one for each result_schema."""
    writer = _Writer()
    if plan.input_schema is not None:
        writer.define(f"{_class_name(plan.name)}Input", plan.input_schema)
    for step in plan.steps:
        schema = step.for_each.result_schema if step.for_each is not None else step.result_schema
        if schema is not None and step.made_for is None and step.wait is None:
            writer.define(f"{_class_name(step.name)}Result", schema)
    lines = ["from typing import Any, Literal", ""]
    lines += ["from pydantic import BaseModel, ConfigDict, Field", ""]
    return "\n".join([*lines, *writer.parts])


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self._names: dict[str, str] = {}
        """Class of each reference of the schema that is written."""
        self._taken: set[str] = set()
        self._unfinished: set[str] = set()
        """Classes that are being written: a field whose type has one of them is written as text."""
        self._root: Any = None

    def define(self, name: str, schema: Any) -> None:
        """Write a schema under this name."""
        self._root, self._names = schema, {}
        type_ = self._type(schema, name, 0)
        if type_ != name:
            self.parts.append(f"\n{self._free(name)} = {type_}\n")

    def _type(self, schema: Any, name: str, depth: int) -> str:
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return "Any"
        if "$ref" in schema:
            return self._of_reference(schema["$ref"], depth)
        if "enum" in schema or "const" in schema:
            return _literal(schema["enum"] if "enum" in schema else [schema["const"]])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return _union([self._type(part, f"{name}{n}", depth + 1) for n, part in enumerate(schema[key], 1)])
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            return _union([self._type({**schema, "type": each}, name, depth + 1) for each in kind])
        if "allOf" in schema:
            return "Any"
        if kind == "object":
            return self._of_object(schema, name, depth)
        if kind == "array":
            items = schema.get("items", True)
            return f"list[{self._type(items, f'{name}Item', depth + 1)}]"
        return _SCALARS.get(str(kind), "Any")

    def _of_reference(self, reference: Any, depth: int) -> str:
        if not isinstance(reference, str) or not re.fullmatch(r"#/(\$defs|definitions)/[^/~%]+", reference):
            return "Any"
        if reference not in self._names:
            _, section, key = reference.split("/")
            target = self._root.get(section, {}).get(key)
            if not isinstance(target, Mapping) or target.get("type") != "object" or "properties" not in target:
                return self._type(target, _class_name(key), depth + 5)
            self._names[reference] = self._free(_class_name(key))
            self._write(target, self._names[reference], depth)
        return self._names[reference]

    def _of_object(self, schema: Mapping[str, Any], name: str, depth: int) -> str:
        if not schema.get("properties"):
            rest = schema.get("additionalProperties", True)
            return f"dict[str, {self._type(rest, f'{name}Value', depth + 1)}]"
        name = self._free(name)
        self._write(schema, name, depth)
        return name

    def _write(self, schema: Mapping[str, Any], name: str, depth: int) -> None:
        required = schema.get("required", ())
        self._unfinished.add(name)
        lines = [f"\nclass {name}(BaseModel):"]
        if schema.get("description"):
            lines += [f"    {_documented(str(schema['description']))}", ""]
        if schema.get("additionalProperties", False) is not False:
            lines += ['    model_config = ConfigDict(extra="allow")', ""]
        for key, part in schema["properties"].items():
            type_ = self._type(part, f"{name}{_class_name(key)}", depth + 1)
            is_forward = bool(self._unfinished.intersection(re.findall(r"\w+", type_)))
            lines.append(f"    {_field(key, type_, key in required, is_forward)}")
        missing = [key for key in required if key not in schema["properties"]]
        lines += [f"    {_field(key, 'Any', True)}" for key in missing]
        self._unfinished.discard(name)
        self.parts.append("\n".join(lines) + "\n")

    def _free(self, name: str) -> str:
        free, number = name, 2
        while free in self._taken:
            free, number = f"{name}{number}", number + 1
        self._taken.add(free)
        return free


def _field(key: str, type_: str, is_required: bool, is_forward: bool = False) -> str:
    if not is_required and type_ != "Any" and "None" not in type_.split(" | "):
        type_ = f"{type_} | None"
    type_ = repr(type_) if is_forward else type_
    plain = key.isidentifier() and not keyword.iskeyword(key) and not key.startswith(("_", "model_"))
    if plain and key not in _TAKEN:
        return f"{key}: {type_}" if is_required else f"{key}: {type_} = None"
    name = re.sub(r"\W", "_", key).strip("_") or "field"
    name = f"{name}_" if not name[0].isdigit() else f"field_{name}"
    default = "" if is_required else "default=None, "
    return f"{name}: {type_} = Field({default}alias={key!r})"


def _literal(values: Any) -> str:
    scalars = [value for value in values if value is None or isinstance(value, str | bool | int)]
    if not values or len(scalars) != len(values):
        return "Any"
    return f"Literal[{', '.join(map(repr, scalars))}]"


def _union(types: list[str]) -> str:
    different = list(dict.fromkeys(types))
    return "Any" if "Any" in different or not different else " | ".join(different)


def _class_name(text: str) -> str:
    name = "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text) if part)
    return name if name and not name[0].isdigit() else f"Type{name}"


def _documented(text: str) -> str:
    line = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''").rstrip('"')
    return f'"""{line}"""'
