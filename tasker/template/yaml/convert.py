"""Scalars of YAML 1.2, duplicate keys and aliases."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

from yaml.nodes import MappingNode, ScalarNode, SequenceNode
from yaml.nodes import Node as YamlNode

from tasker.template.diagnostics import Position, Report
from tasker.template.yaml.nodes import BROKEN, COLLECTION, MAX_DEPTH, PLAIN, QUOTED, Entry, Node

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
DECIMAL = re.compile(r"[-+]?[0-9]+")
OCTAL = re.compile(r"0o[0-7]+")
HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

STARTS_NUMBER = frozenset("+-.0123456789")

CORE_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}


class BadScalar(ValueError):
    """Scalar without a value that a template can contain; the message is the reason, the hint the fix."""

    def __init__(self, message: str, hint: str = "put it in quotes if it is meant as text") -> None:
        super().__init__(message)
        self.hint = hint


def resolve_untagged(text: str) -> Any:
    """Return the value of an unquoted scalar.

    Raises `BadScalar` for a number that JSON cannot represent.
    """
    if text in NULLS:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    return _number(text) if text[0] in STARTS_NUMBER else text


def resolve_tagged(text: str, tag: str) -> Any:
    """Return the value of a scalar with an explicit core tag such as `!!str`.

    Raises `BadScalar` if the text does not match the tag.
    """
    kind = CORE_TAGS[tag]
    if kind == "str":
        return text
    value = resolve_untagged(text)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    expected = {"int": int, "float": float, "bool": bool, "null": type(None)}[kind]
    if type(value) is not expected:
        raise BadScalar(f"`{text}` is not a value of the tag `!!{kind}`", "remove the tag")
    return value


def _number(text: str) -> Any:
    if NOT_FINITE.fullmatch(text):
        raise BadScalar(f"`{text}` is not a number that JSON can hold")
    for pattern, base in ((DECIMAL, 10), (OCTAL, 8), (HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return _integer(text, base)
    return _float(text) if FLOAT.fullmatch(text) else text


def _integer(text: str, base: int) -> int:
    digits = text[2:] if base != 10 else text
    if len(digits) > 1000:
        raise BadScalar("the number has more than 1000 digits")
    return int(digits, base)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadScalar(f"`{text}` is too large for a number")
    return value


UNQUOTED_BRACES = "an unquoted `{{` starts a YAML mapping"
QUOTE_BRACES = 'put the value in quotes: "{{ ... }}"'
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
MAX_VALUES = 200_000
"""Maximum number of values in one document, where each use of an alias counts."""


class Converter:
    """Converter of one document. A value that cannot be used becomes `BROKEN` and is reported once.

    `placeholders` are line and column of values that could not be read and have been reported.
    """

    def __init__(self, report: Report, placeholders: Container[tuple[int, int]] = ()) -> None:
        self._report = report
        self._placeholders = placeholders
        self._done: dict[int, tuple[Node, int, int]] = {}
        self._open: set[int] = set()
        self._count = 0
        self._level = 0
        self._deepest = 0

    def convert(self, node: YamlNode) -> Node:
        """Convert a node and everything below it."""
        if isinstance(node, ScalarNode):
            return self._counted(node)
        known = self._done.get(id(node))
        if known:
            return self._used_again(node, *known)
        if id(node) in self._open:
            return self._broken("T006", "the alias contains itself", node, "repeat the value instead of the alias")
        self._open.add(id(node))
        result = self._measured(node)
        self._open.discard(id(node))
        return result

    def _counted(self, node: ScalarNode) -> Node:
        """Convert a scalar; it contains no other values, so an alias of one needs no special treatment."""
        self._count += 1
        self._deepest = max(self._deepest, self._level + 1)
        return self._scalar(node)

    def _measured(self, node: YamlNode) -> Node:
        """Convert a node and record its number of values and levels for its aliases."""
        count, deepest = self._count, self._deepest
        self._count += 1
        self._level += 1
        self._deepest = self._level
        result = self._convert_new(node)
        self._done[id(node)] = (result, self._count - count, self._deepest - self._level + 1)
        self._level -= 1
        self._deepest = max(deepest, self._deepest)
        return result

    def _used_again(self, node: YamlNode, result: Node, size: int, height: int) -> Node:
        self._count += size
        self._deepest = max(self._deepest, self._level + height)
        if self._count > MAX_VALUES:
            return self._broken("T007", f"the aliases unfold to more than {MAX_VALUES} values", node)
        if self._level + height > MAX_DEPTH:
            return self._broken("T007", f"the aliases unfold to more than {MAX_DEPTH} levels", node)
        return result

    def _convert_new(self, node: YamlNode) -> Node:
        if node.tag != COLLECTION and CORE_TAGS.get(node.tag) not in ("map", "seq"):
            return self._unknown_tag(node)
        if isinstance(node, SequenceNode):
            return Node([self.convert(item) for item in node.value], location_of(node))
        assert isinstance(node, MappingNode)
        return self._mapping(node)

    def _scalar(self, node: ScalarNode) -> Node:
        location = location_of(node)
        if location[:2] in self._placeholders:
            return Node(BROKEN, location)
        if node.tag not in (PLAIN, QUOTED) and CORE_TAGS.get(node.tag) in (None, "map", "seq"):
            return self._unknown_tag(node)
        try:
            return Node(_scalar_value(node), location, node.value)
        except BadScalar as error:
            return self._broken("T009", str(error), node, error.hint)

    def _unknown_tag(self, node: YamlNode) -> Node:
        hint = "remove it, or put an expression in quotes"
        if isinstance(node, ScalarNode) and not node.style:
            text = f"{node.tag} {node.value}".strip()
            mark = "'" if '"' in text else '"'
            hint = f"{hint}: {mark}{text}{mark}"
        return self._broken("T008", f"the tag `{node.tag}` has no meaning in a template", node, hint)

    def _mapping(self, node: MappingNode) -> Node:
        if _is_braces(node):
            return self._broken("T004", UNQUOTED_BRACES, node, QUOTE_BRACES)
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        for key, value in node.value:
            if key.tag == PLAIN and key.value == "<<":
                merged.append(self.convert(value))
            else:
                self._entry(key, value, entries)
        for source in merged:
            self._merge(source, entries)
        return Node(entries, location_of(node))

    def _entry(self, key: YamlNode, value: YamlNode, entries: dict[str, Entry]) -> None:
        name = self.convert(key)
        converted = self.convert(value)
        if name.broken:
            return
        if not isinstance(name.value, str):
            self._bad_key(name)
        elif name.value in entries:
            hint = f"it is first in line {entries[name.value].key.line}"
            self._report.add("T003", f"the key `{name.value}` stands here twice", name.location, hint)
        else:
            entries[name.value] = Entry(name.location, converted)

    def _bad_key(self, key: Node) -> None:
        hint = f'write it in quotes: "{key.text}"' if key.text else "use a text as the key"
        self._report.add("T005", "a key must be text", key.location, hint)

    def _merge(self, source: Node, entries: dict[str, Entry]) -> None:
        for part in source.value if isinstance(source.value, list) else [source]:
            if isinstance(part.value, dict):
                for key, entry in part.value.items():
                    entries.setdefault(key, entry)
            elif not part.broken:
                self._report.add("T022", "`<<` merges mappings only", part.location)

    def _broken(self, code: str, message: str, node: YamlNode, hint: str | None = None) -> Node:
        location = location_of(node)
        self._report.add(code, message, location, hint)
        return Node(BROKEN, location)


def location_of(node: YamlNode) -> Position:
    """Return the start of the node and its length on that line; block collections have length 1."""
    start, end = node.start_mark, node.end_mark
    same_line = start.line == end.line and end.column > start.column
    return Position(start.line + 1, start.column + 1, end.column - start.column if same_line else 1)


def _is_braces(node: MappingNode) -> bool:
    return bool(node.flow_style) and any(isinstance(key, MappingNode) for key, _ in node.value)


def _scalar_value(node: ScalarNode) -> Any:
    if node.tag == PLAIN:
        value = resolve_untagged(node.value)
    else:
        value = node.value if node.tag == QUOTED else resolve_tagged(node.value, node.tag)
    if isinstance(value, str) and UNSTORABLE.search(value):
        raise BadScalar("the text holds a NUL character or half of a surrogate pair", "PostgreSQL cannot store it")
    return value
