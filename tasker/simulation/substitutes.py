"""Values that stand for sensitive ones in a recorded case: they fit the same schemas, and equal ones are alike."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tasker.errors import UsageError
from tasker.redaction import MARK, REDACTED, SHORTEST_TEXT, Schema, replace_sensitive, texts_of
from tasker.simulation.samples import FORMATS, sample
from tasker.template.schema_check import check_result

DEFINITIONS = ("$defs", "definitions")


class Substitutes:
    """Substitutes of the sensitive values of one task.

    Values are first collected with `collect`, then replaced with `replaced`: by place, and in every text that contains
    one. Places are written `input.card.number` and `steps.charge.receipt`; `[]` stands for the items of a list. `keep`
    are places, or the beginnings of places, whose values stay as they are.
    """

    def __init__(self, keep: Collection[str] = ()) -> None:
        self._keep = tuple(place.replace("[]", "") for place in keep)
        self._schemas: dict[str, list[Schema]] = {}
        """Schemas that a value fits, by its JSON."""
        self._values: dict[str, Any] = {}
        self._chosen: dict[str, Any] = {}
        self._texts: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        """Finds the beginnings of sensitive texts, of which there may be thousands."""
        self._lengths: dict[str, list[int]] = {}
        """Lengths of the sensitive texts by their beginnings, the longest first."""
        self.places: list[str] = []
        """Places whose values are replaced."""
        self.kept: list[str] = []

    def collect(self, value: Any, schema: Schema | None, place: str) -> None:
        """Collect the sensitive values of the input or of a result."""

        def add(value: Any, place: str, schemas: Sequence[Schema]) -> Any:
            if self._is_kept(place):
                self.kept += [place] * (place not in self.kept)
            elif value is not None:
                self.places += [place] * (place not in self.places)
                key = json.dumps(value, sort_keys=True)
                self._values[key] = value
                self._schemas.setdefault(key, []).append(_joined(schemas, schema or {}))
            return value

        replace_sensitive(schema, value, add, place)

    def choose(self) -> None:
        """Choose the substitutes. Raises `UsageError` for a value for which none fits."""
        for number, (key, value) in enumerate(self._values.items(), 1):
            self._chosen[key] = self._fitting(value, self._schemas[key], number, key)
        for number, text in enumerate(sorted({text for value in self._values.values() for text in texts_of(value)})):
            if len(text) >= SHORTEST_TEXT and text != REDACTED:
                same = self._chosen.get(json.dumps(text))
                self._texts[text] = same if isinstance(same, str) else f"replaced{number + 1}"
        for text in sorted(self._texts, key=len, reverse=True):
            self._lengths.setdefault(text[:SHORTEST_TEXT], []).append(len(text))
        if self._texts:
            self._pattern = re.compile("|".join(map(re.escape, self._lengths)))

    def replaced(self, value: Any, schema: Schema | None, place: str) -> Any:
        """Return the input or a result with its substitutes."""

        def substitute(value: Any, place: str, schemas: Sequence[Schema]) -> Any:
            if value is None or self._is_kept(place):
                return _Fixed(value)
            return _Fixed(self._chosen[json.dumps(value, sort_keys=True)])

        return self.in_texts(replace_sensitive(schema, value, substitute, place))

    def in_texts(self, value: Any) -> Any:
        """Return data without the sensitive texts that it contains."""
        if isinstance(value, _Fixed):
            return value.value
        if isinstance(value, str):
            return self._without_secrets(value)
        if isinstance(value, Mapping):
            return {self.in_texts(key): self.in_texts(item) for key, item in value.items()}
        return [self.in_texts(item) for item in value] if isinstance(value, list | tuple) else value

    def _without_secrets(self, text: str) -> str:
        if self._pattern is None:
            return text
        parts, at = [], 0
        while (match := self._pattern.search(text, at)) is not None:
            start = match.start()
            found = (text[start : start + length] for length in self._lengths[match[0]])
            secret = next((part for part in found if part in self._texts), None)
            parts += [text[at:start], text[start] if secret is None else self._texts[secret]]
            at = start + (1 if secret is None else len(secret))
        return "".join([*parts, text[at:]])

    def _is_kept(self, place: str) -> bool:
        plain = place.replace("[]", "")
        return any(plain == keep or plain.startswith(f"{keep}.") for keep in self._keep)

    def _fitting(self, value: Any, schemas: Sequence[Schema], number: int, key: str) -> Any:
        for candidate in _candidates(value, schemas[0], number):
            if candidate != value and not any(check_result(schema, candidate) for schema in schemas):
                return candidate
        if any("const" in each or len(each.get("enum", (1, 2))) == 1 for each in schemas[0]["allOf"]):
            return value  # the schema itself says it
        place = next(place for place in self.places)
        raise UsageError(
            f"no value that could stand for the sensitive one at {self._place_of(key, place)} fits its schema",
            hint="keep the value with --keep PLACE, if it may be in a file",
        )

    def _place_of(self, key: str, default: str) -> str:
        return default if len(self.places) == 1 else f"one of {', '.join(self.places)}"


class _Fixed:
    """Value in which no further text is replaced."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _joined(schemas: Sequence[Schema], root: Schema) -> dict[str, Any]:
    """Return a schema of everything that applies to a value, with the definitions to which it may refer."""
    definitions = {name: root[name] for name in DEFINITIONS if name in root}
    return {**definitions, "allOf": [{key: part for key, part in each.items() if key != MARK} for each in schemas]}


def _candidates(value: Any, schema: Schema, number: int) -> Iterator[Any]:
    """Yield values that might fit, the most telling first; `number` makes those of different values differ."""
    parts: dict[str, Any] = {}
    for part in schema["allOf"]:
        parts = {**part, **parts}
    listed = parts.get("enum") or ()
    yield from (listed[(number + turn) % len(listed)] for turn in range(len(listed)))
    if isinstance(value, bool):
        yield from (number % 2 == 0, not value)
    elif isinstance(value, int | float):
        yield from _numbers(value, parts, number)
    elif isinstance(value, str):
        yield from _texts(value, parts, number)
    try:
        yield sample({**{name: schema[name] for name in DEFINITIONS if name in schema}, **parts})
    except (ValueError, TypeError, LookupError):
        return


def _numbers(value: float, parts: Mapping[str, Any], number: int) -> Iterator[Any]:
    step = parts.get("multipleOf", 1)
    least = parts.get("minimum", parts.get("exclusiveMinimum", 0))
    most = parts.get("maximum", parts.get("exclusiveMaximum"))
    kind = type(value)
    start = -(-least // step) * step
    yield kind(start + number * step)
    if most is not None:
        yield from (kind(most - number * step), kind((least + most) / 2), least, most)


def _texts(value: str, parts: Mapping[str, Any], number: int) -> Iterator[str]:
    shape = _shaped(value, number)
    if "pattern" in parts:
        yield shape
    yield _with_number(FORMATS.get(parts.get("format", ""), ""), number)
    least, most = parts.get("minLength", 0), parts.get("maxLength")
    text = f"replaced{number}" if most is None or most >= 10 else str(number)
    yield text.ljust(least, "x")[:most]
    yield shape


def _with_number(text: str, number: int) -> str:
    return re.sub(r"^somebody", f"somebody{number}", text.replace("example.com", f"example{number}.com", 1)) or text


def _shaped(value: str, number: int) -> str:
    """Return a text with a letter for each letter and a digit for each digit, which most patterns accept."""
    digits = iter(f"{number}" * len(value))
    return re.sub(r"[^\W\d_]", lambda m: "X" if m[0].isupper() else "x", re.sub(r"\d", lambda _: next(digits), value))
