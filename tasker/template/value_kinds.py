"""Kinds of value of template keys. Each reads a node and returns its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from tasker.dataclasses import dataclass
from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import DocumentReading, Path
from tasker.template.error_rules import parse_rule
from tasker.template.names import MAX_PRIORITY, MIN_PRIORITY, NAMED_PRIORITIES, PRIORITY_EXPECTED, parse_priority
from tasker.template.yaml.nodes import Node, describe

INVALID = object()
"""Result of reading a value that cannot be used; the reason has been reported."""

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)[^{}]*\}")
"""`${NAME}` and `${NAME:-default}`, which are replaced in configuration files but not in templates."""


JITTERS: Mapping[Any, float | str] = {"none": 0.0, "full": "full"}
"""Words for a jitter."""


class ValueKind(Protocol):
    """Kind of value."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Return the plain value, or `INVALID` after reporting the problem."""

    def json_schema(self) -> dict[str, Any]:
        """Return the same rule as JSON Schema for editors."""


@dataclass(frozen=True)
class Text:
    """Text, by default not empty; `pattern` and `rule` restrict names."""

    pattern: str | None = None
    rule: str = ""
    max_length: int | None = None
    may_be_empty: bool = False

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the text; a malformed name is reported and still returned, so that the graph can be checked."""
        value = node.value
        if not isinstance(value, str):
            hint = f'put it in quotes: "{node.text}"' if node.text and value is not None else None
            return wrong_type("text", node, reading, hint)
        if not value.strip() and not self.may_be_empty:
            reading.report.add("T024", "the text is empty", node.location)
            return INVALID
        self._check_name(value, node, reading)
        return value

    def _check_name(self, value: str, node: Node, reading: DocumentReading) -> None:
        if self.pattern and not re.fullmatch(self.pattern, value):
            reading.report.add("T026", f"`{value}` is not a valid name here", node.location, self.rule)
        elif self.max_length and len(value) > self.max_length:
            message = f"the name has {len(value)} characters, at most {self.max_length} are possible"
            reading.report.add("T026", message, node.location)

    def json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.pattern:
            schema["pattern"] = f"^(?:{self.pattern})$"
        if self.max_length:
            schema["maxLength"] = self.max_length
        if not self.may_be_empty:
            schema["minLength"] = 1
        return schema


@dataclass(frozen=True)
class Version(Text):
    """Text, or a number that is read as written: `1.10` is "1.10"."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            node = Node(node.text, node.location, node.text)
        return super().read(node, path, reading)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [super().json_schema(), {"type": "number"}]}


@dataclass(frozen=True)
class Boolean:
    """`true` or `false`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the boolean; words that YAML 1.1 reads as booleans get a hint."""
        if isinstance(node.value, bool):
            return node.value
        words = {"yes": "true", "on": "true", "no": "false", "off": "false"}
        word = words.get(str(node.value).lower())
        return wrong_type("`true` or `false`", node, reading, f"write `{word}`" if word else None)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Number:
    """Number within bounds; `whole` allows only integers, `above` is an exclusive bound."""

    whole: bool = False
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        value = node.value
        kinds = int if self.whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return wrong_type("a whole number" if self.whole else "a number", node, reading, _unquote(node))
        problem = self._out_of_range(value)
        if problem:
            reading.report.add("T024", f"expected a number {problem}, found {node.text}", node.location)
            return INVALID
        return value

    def _out_of_range(self, value: float) -> str | None:
        """Describe the allowed range if the value is outside of it, else return None."""
        below = (self.minimum is not None and value < self.minimum) or (self.above is not None and value <= self.above)
        if not below and (self.maximum is None or value <= self.maximum):
            return None
        words = {"of at least": self.minimum, "above": self.above, "of at most": self.maximum}
        return " and ".join(f"{word} {bound:,}" for word, bound in words.items() if bound is not None)

    def json_schema(self) -> dict[str, Any]:
        bounds = {"minimum": self.minimum, "exclusiveMinimum": self.above, "maximum": self.maximum}
        return {"type": "integer" if self.whole else "number", **{k: v for k, v in bounds.items() if v is not None}}


@dataclass(frozen=True)
class Choice:
    """One of several words; `aliases` maps other spellings to the canonical one."""

    values: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...] = ()

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the canonical word."""
        value = dict(self.aliases).get(node.value, node.value) if isinstance(node.value, str) else node.value
        if value in self.values and isinstance(value, str):
            return value
        if node.broken:
            return INVALID
        hint = did_you_mean(str(node.value), self._words())
        reading.report.add(
            "T023", f"expected one of {listed(self.values)}, found {describe(node)}", node.location, hint
        )
        return INVALID

    def _words(self) -> list[str]:
        return [*self.values, *(alias for alias, _ in self.aliases)]

    def json_schema(self) -> dict[str, Any]:
        """Return an enumeration of all spellings."""
        return {"enum": self._words()}


@dataclass(frozen=True)
class Priority:
    """Priority of tasks, as a number."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the number, or that of a name."""
        if (priority := parse_priority(node.value)) is not None:
            return priority
        hint = did_you_mean(str(node.value), NAMED_PRIORITIES)
        reading.report.add("T120", f"{PRIORITY_EXPECTED}; found {describe(node)}", node.location, hint)
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": MIN_PRIORITY, "maximum": MAX_PRIORITY}
        return {"anyOf": [{"enum": [*NAMED_PRIORITIES]}, number]}


@dataclass(frozen=True)
class ErrorName:
    """Error that a retry policy names."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        try:
            return parse_rule(node.value)
        except ValueError as error:
            reading.report.add("T064", str(error), node.location)
            return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 100, "maximum": 599}]}


@dataclass(frozen=True)
class Fraction:
    """Jitter of a retry: a share from 0 to 1, `true` for the default share, `false` or `none` for none, or `full`."""

    when_true: float

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        if isinstance(node.value, bool):
            return self.when_true if node.value else 0.0
        if isinstance(node.value, str) and node.value in JITTERS:
            return JITTERS[node.value]
        if not isinstance(node.value, (int, float)):
            hint = did_you_mean(str(node.value), JITTERS)
            return wrong_type("a share from 0 to 1, `true`, `false`, `none` or `full`", node, reading, hint)
        value = Number(minimum=0, maximum=1).read(node, path, reading)
        return value if value is INVALID else float(value)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, Number(minimum=0, maximum=1).json_schema(), {"enum": list(JITTERS)}]}


@dataclass(frozen=True)
class ListOf:
    """List of values of one shape."""

    item: ValueKind
    at_least_one: bool = False

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the usable items."""
        if not isinstance(node.value, list):
            return wrong_type("a list", node, reading, _as_list(node))
        if self.at_least_one and not node.value:
            reading.report.add("T024", "the list is empty", node.location, "at least one item is needed")
            return INVALID
        return [self._read_item(item, (*path, index), reading) for index, item in enumerate(node.value)]

    def _read_item(self, item: Node, path: Path, reading: DocumentReading) -> Any:
        reading.mark(path, item.location)
        return self.item.read(item, path, reading)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.json_schema()} | ({"minItems": 1} if self.at_least_one else {})


@dataclass(frozen=True)
class Free:
    """Mapping that Tasker stores unchanged."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        if not isinstance(node.value, dict):
            return wrong_type("a mapping", node, reading)
        return node.plain()

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object"}


@dataclass(frozen=True)
class Verbatim(Free):
    """Mapping passed to a handler as written; text that looks like a variable gets a warning: it is not replaced."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        for text in node.texts():
            for name in dict.fromkeys(VARIABLE.findall(text.value)):
                message = f"`${{{name}}}` is not replaced: the handler gets this text as it is"
                hint = f'let the handler read os.environ["{name}"], or give the value in `environments`'
                reading.report.add("T084", message, text.location, hint)
        return super().read(node, path, reading)


@dataclass(frozen=True)
class Inputs(Free):
    """Mapping of inputs whose texts may contain expressions, which `rules.inputs` checks."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        reading.mark_below(node, path)
        return super().read(node, path, reading)


@dataclass(frozen=True)
class MapOf:
    """Mapping from names chosen by the author to values of one shape."""

    item: ValueKind

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the usable entries by name."""
        if not isinstance(node.value, dict):
            return wrong_type("a mapping", node, reading)
        values = {}
        for name, entry in node.value.items():
            reading.mark((*path, name), entry.node.location, entry.key)
            value = self.item.read(entry.node, (*path, name), reading)
            if value is not INVALID:
                values[name] = value
        return values

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.item.json_schema()}


def wrong_type(expected: str, node: Node, reading: DocumentReading, hint: str | None = None) -> Any:
    """Report that a value has the wrong type, once per value, and return `INVALID`."""
    if not node.broken:
        reading.report.add("T022", f"expected {expected}, found {describe(node)}", node.location, hint)
    return INVALID


def _unquote(node: Node) -> str | None:
    looks_like_number = isinstance(node.value, str) and re.fullmatch(r"-?\d+(\.\d+)?", node.value)
    return "remove the quotes" if looks_like_number else None


def _as_list(node: Node) -> str | None:
    return f"write [{node.text}]" if isinstance(node.value, str) and node.value else None
