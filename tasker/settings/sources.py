"""Text of a configuration file: `${VAR}`, earlier spellings of keys, line numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tasker.settings.check import SettingProblem
from tasker.settings.nested import deep_merge, find, nested, without
from tasker.settings.table import Substituted

ALIASES: Mapping[str, str] = {
    "common.circuit_breakers.component_configs.pgmq": "common.circuit_breakers.component_configs.messaging",
    "orchestration.decision_points.max_depth": "orchestration.decision_points.max_decision_depth",
    "orchestration.decision_points.warn_threshold": "orchestration.decision_points.warn_threshold_depth",
}
"""Older path -> current path."""


def canonical(tables: Mapping[str, Any]) -> tuple[dict[str, Any], list[SettingProblem]]:
    """Return the tables with current spellings, and a problem for each key that is set in both spellings."""
    result, problems = dict(tables), list[SettingProblem]()
    for older, path in ALIASES.items():
        value = find(tables, older)
        if value is None:
            continue
        if find(tables, path) is not None:
            problems.append(SettingProblem(older, value, f"An alias of {path}, which is also set", f"Keep only {path}"))
            result = without(result, frozenset({older}))
        else:
            result = deep_merge(without(result, frozenset({older})), nested({path: value}))
    return result, problems


_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def line_of(text: str, path: str) -> int | None:
    """Return the number, from 1, of the line that sets the dotted path or else the nearest table above it."""
    places = _places(text)
    parts = path.partition("[")[0].split(".")
    for end in range(len(parts), 0, -1):
        if line := places.get(".".join(parts[:end])):
            return line
    return None


def _places(text: str) -> dict[str, int]:
    table, places = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _plain(header[1])
            places.setdefault(table, number)
        elif key := _KEY.match(line):
            places.setdefault(f"{table}.{_plain(key[1])}".lstrip("."), number)
    return places


def _plain(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))


_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}", re.ASCII)
Lookup = Callable[[str], str | None]


def variables_in(value: Any) -> list[tuple[str, str | None]]:
    """Return (name, default) of the placeholders in a text; empty for other values."""
    return [(match[1], match[2]) for match in _PLACEHOLDER.finditer(value)] if isinstance(value, str) else []


def has_unset(value: Any, lookup: Lookup) -> bool:
    """Return whether a text, also in a list or table, needs a variable that is unset or empty."""
    if isinstance(value, (list, Mapping)):
        return any(has_unset(item, lookup) for item in (value.values() if isinstance(value, Mapping) else value))
    return any(not lookup(name) for name, default in variables_in(value) if default is None)


def without_unset(value: Mapping[str, Any], lookup: Lookup) -> dict[str, Any]:
    """Return a table without the values that need an unset variable, also in each table of a list of tables."""
    return {key: _known(item, lookup) for key, item in value.items() if _is_known(item, lookup)}


def _is_known(value: Any, lookup: Lookup) -> bool:
    return isinstance(value, Mapping) or _is_list_of_tables(value) or not has_unset(value, lookup)


def _known(value: Any, lookup: Lookup) -> Any:
    if isinstance(value, Mapping):
        return without_unset(value, lookup)
    return [without_unset(item, lookup) for item in value] if _is_list_of_tables(value) else value


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


class Substitution:
    """Replacement of placeholders; one that cannot be replaced is a `SettingProblem` and stays as it is.

    `lookup` returns a variable's value, or None if it is not set. As in a shell, `:-` also replaces an empty value.
    Without it an empty value is refused: the variable was meant to be set, and empty may mean something else.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.problems: list[SettingProblem] = []

    def tables(self, tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
        """Return a copy with all placeholders replaced."""
        return {key: self._value(value, f"{prefix}{key}") for key, value in tables.items()}

    def _value(self, value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            return self.tables(value, f"{path}.")
        if isinstance(value, list):
            return [self._value(item, f"{path}[{index}]") for index, item in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) and "${" in value else value

    def _text(self, text: str, path: str) -> str:
        missing = [name for name, default in variables_in(text) if default is None and not self._lookup(name)]
        if missing:
            self.problems.append(self._missing(path, text, list(dict.fromkeys(missing))))
            return text
        if "${" in _PLACEHOLDER.sub("", text):
            issue = "Incomplete placeholder"
            self.problems.append(
                SettingProblem(path, text, issue, "Write ${NAME} or ${NAME:-default}, without braces inside")
            )
            return text
        return Substituted(_PLACEHOLDER.sub(self._replacement, text))

    def _missing(self, path: str, text: str, names: list[str]) -> SettingProblem:
        if unset := [name for name in names if self._lookup(name) is None]:
            issue = f"The environment variable {', '.join(unset)} is not set"
            return SettingProblem(path, text, issue, f"Set it, or write a default: ${{{unset[0]}:-...}}")
        issue = f"The environment variable {', '.join(names)} is set but empty"
        return SettingProblem(path, text, issue, f"Give it a value, or allow it to be empty: ${{{names[0]}:-}}")

    def _replacement(self, match: re.Match[str]) -> str:
        value = self._lookup(match[1])
        return (value or match[2]) if match[2] is not None else str(value)
