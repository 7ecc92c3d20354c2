"""Mappings that are checked against a table of keys: aliases, unknown and conflicting keys."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import DocumentReading, Path
from tasker.template.foreign_keys import IgnoredKey, Ways, instead
from tasker.template.schema_check import schema_problems
from tasker.template.value_kinds import INVALID, ListOf, MapOf, ValueKind, wrong_type
from tasker.template.yaml.nodes import Entry, Node


@dataclass(frozen=True)
class Key:
    """Row of the table of keys.

    `aliases` are other spellings; `older` lists the deprecated ones among them. `notice` deprecates the key itself,
    `refused` makes it an error; both texts name the alternative. `idle` warns that the key is ignored. `default` is for
    readers; the compiler fills it in. `may_be_empty`: an empty value is treated as an absent key.
    """

    name: str
    shape: ValueKind
    doc: str
    required: bool = False
    default: Any = None
    aliases: tuple[str, ...] = ()
    older: tuple[str, ...] = ()
    notice: str | None = None
    refused: str | None = None
    idle: IgnoredKey | None = None
    may_be_empty: bool = True
    only_with: tuple[str, ...] = ()
    """Values of `type` with which the mapping has the key; with others its name may be a foreign one."""

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """All accepted names, the canonical one first."""
        return (self.name, *self.aliases)


@dataclass(frozen=True)
class Mapping:
    """Mapping with a fixed set of keys; any other key is an error."""

    title: str
    keys: tuple[Key, ...]
    shorthand: str | None = None
    """Key that a bare text stands for."""
    foreign: Ways = ()
    """Keys of other systems at this location."""
    either: tuple[str, ...] = ()
    """Keys of which one is required."""
    unless: tuple[str, tuple[str, ...]] | None = None
    """Key and those of its values with which none of `either` is required."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the usable values under their canonical keys."""
        if self.shorthand and isinstance(node.value, str):
            node = Node({self.shorthand: Entry(node.location, node)}, node.location)
        if not isinstance(node.value, dict):
            return wrong_type("a mapping", node, reading)
        unknown = [name for name in node.value if name not in self._known or self._is_foreign(name, node.value)]
        self._report_unknown(unknown, node.value, reading)
        present = {self._known[name] for name in node.value if name not in unknown}
        values = {key.name: self._read_key(key, node.value, path, reading) for key in self.keys if key.name in present}
        lacks_one = self.either and not present.intersection(self.either) and not self._is_free(values)
        if self._needed - present or lacks_one:
            self._report_missing(unknown, node, reading, lacks_one=bool(lacks_one))
        return {name: value for name, value in values.items() if value is not INVALID}

    def _is_foreign(self, name: str, entries: dict[str, Entry]) -> bool:
        """Return whether a key of other types only has this name, which means something else in other systems."""
        types = next(key.only_with for key in self.keys if name in key.spellings)
        if not types or instead(name, self.foreign) is None:
            return False
        return "type" not in entries or entries["type"].node.value not in types

    def _is_free(self, values: dict[str, Any]) -> bool:
        return self.unless is not None and values.get(self.unless[0]) in self.unless[1]

    def _read_key(self, key: Key, entries: dict[str, Entry], path: Path, reading: DocumentReading) -> Any:
        present = [(name, entries[name]) for name in key.spellings if name in entries]
        for spelling, entry in present:
            self._report_notice(key, spelling, entry, reading)
        if key.refused:
            return INVALID
        values = [self._read_entry(key, entry, path, reading) for _, entry in reversed(present)]
        if len(values) > 1 and any(value != values[-1] for value in values):
            _report_conflict(present, reading)
        return values[-1]

    def _read_entry(self, key: Key, entry: Entry, path: Path, reading: DocumentReading) -> Any:
        if entry.node.value is None and key.may_be_empty and not key.required:
            return INVALID
        path = (*path, key.name)
        reading.mark(path, entry.node.location, entry.key)
        return key.shape.read(entry.node, path, reading)

    def _report_notice(self, key: Key, spelling: str, entry: Entry, reading: DocumentReading) -> None:
        if key.refused:
            reading.report.add("T027", f"`{spelling}` is not supported", entry.key, key.refused)
        elif key.idle:
            reading.report.add("T085", f"`{spelling}` has no effect: {key.idle.why}", entry.key, key.idle.instead)
        elif key.notice:
            reading.report.add("T083", f"`{spelling}` is deprecated", entry.key, key.notice)
        elif spelling in key.older:
            reading.report.add("T083", f"`{spelling}` is an older spelling", entry.key, f"write `{key.name}`")

    @cached_property
    def _known(self) -> dict[str, str]:
        """Canonical key name for each spelling."""
        return {spelling: key.name for key in self.keys for spelling in key.spellings}

    @cached_property
    def _needed(self) -> frozenset[str]:
        return frozenset(key.name for key in self.keys if key.required)

    def _report_unknown(self, names: list[str], entries: dict[str, Entry], reading: DocumentReading) -> None:
        for name in names:
            if way := instead(name, self.foreign):
                reading.report.add("T027", f"`{name}` is no key of {self.title}", entries[name].key, way)
                continue
            message = f"unknown key `{name}` in {self.title}"
            reading.report.add("T020", message, entries[name].key, self._hint_for(name))

    def _hint_for(self, name: str) -> str:
        inside = [key.name for key in self.keys if name in _names_inside(key.shape)]
        if inside:
            return f"`{name}` belongs under `{inside[0]}`"
        return did_you_mean(name, self._known) or f"known keys: {listed(key.name for key in self.keys)}"

    def _report_missing(self, unknown: list[str], node: Node, reading: DocumentReading, lacks_one: bool) -> None:
        meant = {hint for name in unknown if (hint := instead(name, self.foreign) or did_you_mean(name, self._known))}
        for key in self.keys:
            needed = key.required or (lacks_one and self.either[:1] == (key.name,))
            absent = needed and not any(name in node.value for name in key.spellings)
            if absent and not any(f"`{name}`" in hint for hint in meant for name in key.spellings):
                reading.report.add(
                    "T021", f"`{key.name}` is missing in {self.title}", node.location, f"add it: {key.doc}"
                )

    def json_schema(self) -> dict[str, Any]:
        """Return the schema of an object with the listed keys only; with a shorthand, a string is also allowed."""
        properties: dict[str, Any] = {}
        for key in self.keys:
            if not key.refused:
                properties |= {name: _property(key, name) for name in key.spellings}
        schema = {"type": "object", "additionalProperties": False, "properties": properties, **self._required()}
        if self.shorthand:
            return {"anyOf": [{"type": "string", "minLength": 1}, schema]}
        return schema

    def _required(self) -> dict[str, Any]:
        required = [key for key in self.keys if key.required]
        one_name = [key.name for key in required if not key.aliases]
        several = [{"anyOf": [{"required": [name]} for name in key.spellings]} for key in required if key.aliases]
        several += [{"anyOf": [*({"required": [name]} for name in self.either), *self._exceptions()]}] * bool(
            self.either
        )
        return ({"required": one_name} if one_name else {}) | ({"allOf": several} if several else {})

    def _exceptions(self) -> list[dict[str, Any]]:
        if self.unless is None:
            return []
        name, values = self.unless
        spellings = next(key.spellings for key in self.keys if key.name == name)
        return [{"required": [word], "properties": {word: {"enum": list(values)}}} for word in spellings]


def _property(key: Key, name: str) -> dict[str, Any]:
    schema = key.shape.json_schema()
    if not key.required:
        schema = _or_null(schema)
    doc = key.doc if name == key.name else f"The same as `{key.name}`: {key.doc}"
    schema = {"description": doc, **schema}
    if key.default is not None:
        schema["default"] = key.default
    if key.notice or name in key.older:
        schema["deprecated"] = True
    return schema


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}


def _names_inside(shape: ValueKind) -> set[str]:
    while isinstance(shape, (ListOf, MapOf)):
        shape = shape.item
    return {name for key in shape.keys for name in key.spellings} if isinstance(shape, Mapping) else set()


def _report_conflict(given: list[tuple[str, Entry]], reading: DocumentReading) -> None:
    (name, entry), (other_name, other) = given[:2]
    message = f"`{other_name}` and `{name}` are two spellings of one key and differ"
    reading.report.add("T025", message, other.key, f"keep `{name}` (line {entry.key.line}) alone")


@dataclass(frozen=True)
class SchemaKey:
    """JSON Schema, which is validated; errors have positions inside it."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the schema as plain data."""
        if not isinstance(node.value, dict):
            return wrong_type("a JSON Schema, which is a mapping", node, reading)
        schema = node.plain()
        properties = node.value["properties"].node.value if "properties" in node.value else None
        for name, entry in properties.items() if isinstance(properties, dict) else ():
            reading.mark((*path, "properties", name), entry.node.location, entry.key)
        for problem in schema_problems(schema):
            reading.report.add(
                "T028", f"not a valid JSON Schema: {problem.message}", _inside(node, problem.path).location
            )
        return schema

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object"}


def _inside(node: Node, path: Path) -> Node:
    for part in path:
        if isinstance(node.value, dict) and part in node.value:
            node = node.value[part].node
        elif isinstance(node.value, list) and isinstance(part, int):
            node = node.value[part]
    return node
