"""Relation of two JSON Schemas: whether every value of a producer fits a consumer, and where it may not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tasker.template.schema_check import check_result
from tasker.template.schema_misfits import (
    Difference,
    Misfit,
    number_differences,
    range_differences,
    string_differences,
    undecided,
)

MOST_COMPARISONS = 20_000
"""Pairs of parts that are compared; beyond it nothing is decided."""
_DEEPEST = 40
ROOT = "$"

ANNOTATIONS = frozenset(
    {
        *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default"),
        *("examples", "deprecated", "readOnly", "writeOnly", "discriminator"),
        *("contentEncoding", "contentMediaType", "contentSchema"),
    }
)
"""Keywords that refuse no value."""
DIALECTS = ("2020-12", "2019-09", "draft-07", "draft-06")


def differences(producer: Any, consumer: Any) -> tuple[Difference, ...]:
    """Return every reason for which some value of `producer` may not fit `consumer`.

    Both are JSON Schemas (None: any value). If the result is empty, every value that fits the producer fits the
    consumer. Otherwise each difference says how certain it is by its `misfit`: an `UNDECIDED` one is none that was
    found, but one that cannot be excluded.
    """
    given, wanted = (True if schema is None else schema for schema in (producer, consumer))
    if _text(given) == _text(wanted):
        return ()
    if not all(map(_comparable, (given, wanted))):
        return (Difference(Misfit.UNDECIDED, ROOT, "the dialect of a schema is not compared"),)
    return tuple(dict.fromkeys(_Comparison(given, wanted).of(given, wanted, ROOT, 0)))


def fits(producer: Any, consumer: Any) -> bool:
    """Return whether every value of the producer is known to fit the consumer."""
    return not differences(producer, consumer)


def _comparable(schema: Any) -> bool:
    dialect = schema.get("$schema", DIALECTS[0]) if isinstance(schema, Mapping) else DIALECTS[0]
    return any(name in str(dialect) for name in DIALECTS)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


class _Comparison:
    """Comparison of two schemas, to whose roots references refer."""

    def __init__(self, producer: Any, consumer: Any) -> None:
        self._producer, self._consumer = producer, consumer
        self._compared = 0
        self._open: dict[tuple[int, int], str] = {}
        older = isinstance(producer, Mapping) and "draft-0" in str(producer.get("$schema", ""))
        self._alone = ("$ref",) if older else ()
        """Keywords beside which a validator ignores all others."""

    def of(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        """Yield the differences of two parts."""
        self._compared += 1
        if self._compared > MOST_COMPARISONS or depth > _DEEPEST:
            yield undecided(path, "the schemas are too large or too deep")
        elif given is not False and not _allows_all(wanted):
            pair = id(given), id(wanted)
            if pair not in self._open:
                self._open[pair] = path
                yield from list(self._of_given(given, wanted, path, depth + 1))
                del self._open[pair]
            elif self._open[pair] == path:  # otherwise the schema refers to itself, and fits there if it fits elsewhere
                yield undecided(path, "a schema refers to itself without end")

    def _of_given(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        if _allows_all(given):
            yield from self._of_anything(wanted, path, depth)
            return
        if wanted is False:
            yield Difference(Misfit.REFUSED, path, "is refused")
            return
        if (narrowing := next((key for key in ("$ref", "allOf", "anyOf", "oneOf") if key in given), None)) is not None:
            yield from self._of_combined(narrowing, given, wanted, path, depth)
        elif "enum" in given or "const" in given:
            yield from self._of_values(given, wanted, path, depth)
        elif isinstance(given.get("type"), list):
            for name in given["type"]:
                yield from self.of({**given, "type": name}, wanted, path, depth)
        elif given.get("type") in ("boolean", "null"):
            values = [None] if given["type"] == "null" else [False, True]
            yield from self._of_values({"enum": values}, wanted, path, depth)
        else:
            yield from self._of_wanted(given, wanted, path, depth)

    def _of_anything(self, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        target = self._resolved(wanted, self._consumer)
        if target is not None and _allows_all(target):
            return
        yield Difference(Misfit.UNDESCRIBED, path, "may be anything: its schema says nothing about it")

    def _of_combined(self, key: str, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        """Compare a schema that consists of others; keys beside them only make it narrower."""
        beside = {name: value for name, value in given.items() if name != key and name not in ANNOTATIONS}
        if key in self._alone:
            beside = {}
        if key == "$ref":
            parts = [self._resolved(given, self._producer)]
            if parts[0] is None:
                yield undecided(path, f"the reference `{given[key]}` is not followed")
                return
        else:
            parts = list(given[key])
        if beside and not list(self.of(beside, wanted, path, depth)):
            return
        results = [list(self.of(part, wanted, path, depth)) for part in parts]
        if key == "allOf" and any(not result for result in results):
            return
        found = [difference for result in results for difference in result]
        certain = not beside and (key != "allOf" or len(parts) == 1)
        if found and not certain:
            found = [undecided(path, f"`{key}` is combined with other keywords")]
        yield from found

    def _of_values(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        checkable = self._standalone(wanted, self._consumer)
        if checkable is None:
            yield undecided(path, "the reference in its schema is not followed")
            return
        own = {name: value for name, value in given.items() if name not in ("enum", "const", *ANNOTATIONS)}
        own_schema = self._standalone(own, self._producer)
        for value in given["enum"] if "enum" in given else [given["const"]]:
            if own_schema is not None and check_result(own_schema, value):
                continue
            if "const" in given and "enum" in given and _text(value) != _text(given["const"]):
                continue
            if problems := check_result(checkable, value):
                misfit = Misfit.TYPE if _is_of_other_type(value, wanted) else Misfit.VALUES
                text = json.dumps(value, ensure_ascii=False)
                reason = problems[0].message
                yield Difference(misfit, path, f"may be {text if len(text) < 60 else 'a value'}: {reason}")

    def _of_wanted(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        """Compare a schema with at most one type with any consumer."""
        if "$ref" in wanted:
            target = self._resolved(wanted, self._consumer)
            if target is None:
                yield undecided(path, f"the reference `{wanted['$ref']}` is not followed")
            else:
                yield from self.of(given, target, path, depth)
        for part in wanted.get("allOf", ()):
            yield from self.of(given, part, path, depth)
        for key in ("anyOf", "oneOf"):
            if key in wanted:
                yield from self._of_alternatives(given, wanted[key], key == "oneOf", path, depth)
        yield from self._of_keywords(given, wanted, path, depth)

    def _of_alternatives(
        self, given: Any, alternatives: Any, exactly_one: bool, path: str, depth: int
    ) -> Iterator[Difference]:
        results = [list(self.of(given, part, path, depth)) for part in alternatives]
        near = [result for result in results if not _is_other_type(result, path)]
        fitting = sum(not result for result in results)
        if (fitting and not exactly_one) or (fitting == 1 and len(near) == 1):
            return
        if len(near) == 1:
            yield from near[0]
        elif not near:
            expected = " or ".join(dict.fromkeys(_types(part, self._consumer) for part in alternatives))
            yield Difference(Misfit.TYPE, path, f"is {_article(given.get('type'))}, expected {expected}")
        else:
            yield undecided(path, f"`{'oneOf' if exactly_one else 'anyOf'}` has several alternatives")

    def _of_keywords(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        kind, kinds = given.get("type"), wanted.get("type")
        allowed = [kinds] if isinstance(kinds, str) else list(kinds or ())
        if allowed and kind is None:
            yield Difference(Misfit.UNDESCRIBED, path, f"may be of any type, expected {' or '.join(allowed)}")
            return
        if allowed and kind not in allowed and not (kind == "integer" and "number" in allowed):
            yield Difference(Misfit.TYPE, path, f"is {_article(kind)}, expected {' or '.join(allowed)}")
            return
        if "enum" in wanted or "const" in wanted:
            values = wanted["enum"] if "enum" in wanted else [wanted["const"]]
            listed = ", ".join(json.dumps(value, ensure_ascii=False) for value in values[:8])
            yield Difference(Misfit.VALUES, path, f"may be any {kind or 'value'}, expected one of {listed}")
            return
        yield from self._of_undecided(given, wanted, path)
        for name, compare in (
            ("object", self._of_objects),
            ("array", self._of_arrays),
            ("string", string_differences),
            ("number", number_differences),
        ):
            if kind is None or kind == name or (kind == "integer" and name == "number"):
                yield from compare(given, wanted, path, depth)

    def _of_undecided(self, given: Any, wanted: Any, path: str) -> Iterator[Difference]:
        kind = given.get("type")
        for names, types in UNDECIDED_TOGETHER:
            if kind is not None and types and kind not in types:
                continue
            own = {name: wanted[name] for name in names if name in wanted}
            other = {name: given[name] for name in names if name in given}
            if own and (_text(own) != _text(other) or "$ref" in _text(own)):
                yield undecided(path, f"`{next(iter(own))}` is not compared")

    def _of_objects(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        fields, expected = given.get("properties", {}), wanted.get("properties", {})
        required = set(given.get("required", ()))
        rest = given.get("additionalProperties", True)
        for name in wanted.get("required", ()):
            if name in required:
                continue
            if name in fields:
                yield Difference(Misfit.OPTIONAL, f"{path}.{name}", "may be absent, expected a value")
            else:
                yield Difference(Misfit.MISSING, f"{path}.{name}", "is absent, expected a value")
        for name, schema in expected.items():
            place = f"{path}.{name}"
            if name in fields:
                yield from self.of(fields[name], schema, place, depth)
            elif _allows_all(rest) or "patternProperties" in given:
                if not _allows_all(schema) and not (name in wanted.get("required", ()) and name not in required):
                    yield Difference(Misfit.UNLISTED, place, "is not listed, and may be anything if it is present")
            else:
                yield from self.of(rest, schema, place, depth)
        yield from self._of_others(given, wanted, path, depth)
        most = given.get("maxProperties", len(fields) if rest is False and "patternProperties" not in given else None)
        least = max(given.get("minProperties", 0), len(required))
        yield from range_differences(
            path, "fields", (least, most), (wanted.get("minProperties"), wanted.get("maxProperties"))
        )

    def _of_others(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        """Compare the fields that only the producer lists, and those that nobody lists."""
        others = wanted.get("additionalProperties", True)
        if _allows_all(others):
            return
        fields, expected = given.get("properties", {}), wanted.get("properties", {})
        if "patternProperties" in wanted or "patternProperties" in given:
            yield undecided(path, "`additionalProperties` with `patternProperties` is not compared")
            return
        for name, schema in fields.items():
            if name not in expected:
                if others is False and schema is not False:
                    yield Difference(Misfit.REFUSED, f"{path}.{name}", "is refused: it is not listed")
                else:
                    yield from self.of(schema, others, f"{path}.{name}", depth)
        rest = given.get("additionalProperties", True)
        if _allows_all(rest) or (others is False and rest is not False):
            yield Difference(Misfit.CLOSED, path, "may have fields that are not listed, which are refused")
        elif rest is not False:
            yield from self.of(rest, others, f"{path}.*", depth)

    def _of_arrays(self, given: Any, wanted: Any, path: str, depth: int) -> Iterator[Difference]:
        most = given.get("maxItems")
        limits = (wanted.get("minItems"), wanted.get("maxItems"))
        yield from range_differences(path, "items", (given.get("minItems", 0), most), limits)
        if wanted.get("uniqueItems") and not given.get("uniqueItems") and most not in (0, 1):
            yield Difference(Misfit.BOUNDS, path, "may repeat an item, expected unique items")
        items, expected = given.get("items", True), wanted.get("items", True)
        by_position = [given.get("prefixItems"), wanted.get("prefixItems")]
        if isinstance(items, list) or isinstance(expected, list) or by_position != [None, None]:
            text = _text([items, by_position[0]])
            if "$ref" in text or text != _text([expected, by_position[1]]):
                yield undecided(path, "items by position are not compared")
        elif most != 0:
            yield from self.of(items, expected, f"{path}[*]", depth)

    def _resolved(self, schema: Any, root: Any) -> Any:
        """Return the target of a reference inside its schema, or None; another schema is returned as it is."""
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return schema
        reference, target = schema["$ref"], root
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or "%" in reference:
            return None
        for part in reference.removeprefix("#").split("/")[1:]:
            name: Any = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdigit() and int(name) < len(target):
                target = target[int(name)]
            else:
                target = target.get(name) if isinstance(target, Mapping) else None
        return target if isinstance(target, Mapping | bool) else None

    def _standalone(self, schema: Any, root: Any) -> Any:
        """Return a part as a schema of its own, or None if it has references that would not resolve there."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        references = set(_references(schema))
        if any(not ref.startswith(("#/$defs/", "#/definitions/")) for ref in references):
            return None
        if not references:
            return schema
        return {**{key: root[key] for key in ("$defs", "definitions") if key in root}, **schema}


UNDECIDED_TOGETHER: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("not",), ()),
    (("if", "then", "else"), ()),
    (("$dynamicRef", "$recursiveRef"), ()),
    (("dependentRequired", "dependentSchemas", "dependencies"), ("object",)),
    (("patternProperties",), ("object",)),
    (("propertyNames",), ("object",)),
    (("unevaluatedProperties",), ("object",)),
    (("contains", "minContains", "maxContains"), ("array",)),
    (("unevaluatedItems", "additionalItems"), ("array",)),
)
"""Keywords that are only compared for equality, with the types that they are about; () means all."""


def _allows_all(schema: Any) -> bool:
    return schema is True or (isinstance(schema, Mapping) and not schema.keys() - ANNOTATIONS)


def _is_other_type(result: list[Difference], path: str) -> bool:
    return bool(result) and all(found.path == path and found.misfit is Misfit.TYPE for found in result)


def _is_of_other_type(value: Any, wanted: Any) -> bool:
    kinds = wanted.get("type") if isinstance(wanted, Mapping) else None
    return kinds is not None and bool(check_result({"type": kinds}, value))


def _types(schema: Any, root: Any) -> str:
    if not isinstance(schema, Mapping):
        return "anything"
    kinds = schema.get("type", schema.get("$ref", "another value"))
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _article(kind: Any) -> str:
    return f"{'an' if str(kind)[0] in 'aio' else 'a'} {kind}" if kind else "of any type"


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        yield from (str(part[key]) for key in ("$ref", "$dynamicRef", "$recursiveRef") if key in part)
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)
