"""Check of plain tables that converts them to settings and reports all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tasker.contracts.dataclasses import dataclass
from tasker.settings.catalogue import accepted, by_path, tables
from tasker.settings.installed import settings_model
from tasker.settings.layering import find, without
from tasker.settings.model import Settings
from tasker.settings.problems import SettingProblem
from tasker.settings.refused import REFUSED
from tasker.settings.reserved import RESERVED
from tasker.settings.rules import broken_rules

PlaceOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class CheckedSettings:
    """Result of a check; `usable` are the settings without the values that have a problem."""

    usable: Settings
    problems: tuple[SettingProblem, ...]

    @property
    def settings(self) -> Settings | None:
        """The settings, or None if there is a problem."""
        return None if self.problems else self.usable


def check(
    values: Mapping[str, Any], place_of: PlaceOf = lambda path: None, reserved: Mapping[str, str] = RESERVED
) -> CheckedSettings:
    """Check values whose placeholders are replaced. `place_of` returns where a dotted path was set.

    `reserved` maps paths that this version does not read to the part that they are reserved for.
    """
    refused = [_refusal(path, values) for path in _set_of(REFUSED, values)]
    refused += [_reservation(path, values, part) for path in _set_of(reserved, values) for part in [reserved[path]]]
    rest = without(values, frozenset(problem.path for problem in refused))
    found = [*refused, *_validate(rest)]
    settings = _parsed(without(rest, frozenset(_base(problem.path) for problem in found)))
    broken = {_base(problem.path) for problem in found}
    found += [problem for problem in broken_rules(settings) if problem.path not in broken]
    problems = tuple(replace(problem, place=place_of(problem.path)) for problem in found)
    return CheckedSettings(settings, problems)


def _parsed(values: Mapping[str, Any]) -> Settings:
    return settings_model().model_validate(values)


def _validate(values: Mapping[str, Any]) -> list[SettingProblem]:
    try:
        _parsed(values)
    except ValidationError as error:
        found = [_problem(details) for details in error.errors(include_url=False)]
        with_bad_entries = {_base(problem.path) for problem in found if "[" in problem.path}
        return [problem for problem in found if problem.path not in with_bad_entries]
    return []


def _set_of(paths: Iterable[str], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield those of the paths that are set; a table is one entry."""
    return (path for path in paths if find(values, path) is not None)


def _refusal(path: str, values: Mapping[str, Any]) -> SettingProblem:
    issue, _, fix = REFUSED[path].rpartition("; ")
    text = fix[:1].upper() + fix[1:]
    return SettingProblem(path, find(values, path), issue or "This setting does not exist", text)


def _reservation(path: str, values: Mapping[str, Any], part: str) -> SettingProblem:
    issue = f"Belongs to {part}, which this version does not have"
    return SettingProblem(path, find(values, path), issue, "Remove this setting")


def _base(path: str) -> str:
    return path.partition("[")[0]


def _problem(details: ErrorDetails) -> SettingProblem:
    path = _dotted(details["loc"])
    context: Mapping[str, Any] = details.get("ctx", {})
    kind, value = details["type"], details["input"]
    if kind == "extra_forbidden":
        return SettingProblem(path, value, "This setting does not exist", _suggestion(path, value))
    if kind == "form":
        return SettingProblem(path, value, context["issue"], context["fix"])
    if kind == "less_than_equal":
        limit = context["le"]
        return SettingProblem(path, value, f"Exceeds maximum allowed value ({limit})", f"Reduce to {limit} or less")
    if kind == "greater_than_equal":
        limit = context["ge"]
        return SettingProblem(path, value, f"Below minimum allowed value ({limit})", f"Increase to {limit} or more")
    if kind in ("too_short", "string_too_short"):
        return SettingProblem(path, value, "Must not be empty", "Write at least one value, or remove the setting")
    parameter = by_path().get(_base(path))
    if parameter is None:
        return SettingProblem(path, value, "Expected a value, got a table", f"Write [{path}] and its settings below it")
    if parameter.choices:
        return SettingProblem(path, value, "Invalid value", f"Use one of: {', '.join(parameter.choices)}")
    return SettingProblem(path, value, f"Not a {_expected(parameter.kind)}", f"Expected: {parameter.range}")


def _expected(kind: str) -> str:
    return {"true or false": "switch (true or false)"}.get(kind, kind)


def _dotted(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _deeper(path: str, value: Any) -> str:
    """Return the path of a misspelled table below `path`, following single nested tables."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return path
    ((name, inside),) = value.items()
    below = [each.rpartition(".")[2] for each in tables() if each.rpartition(".")[0] == path]
    close = get_close_matches(name, below, 1, 0.6) if isinstance(inside, Mapping) else []
    return _deeper(f"{path}.{close[0]}", inside) if close else path


def _in_common(one: str, other: str) -> int:
    """Return the number of common ancestor tables."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _suggestion(path: str, value: Any) -> str:
    known = accepted()
    above, _, name = path.rpartition(".")
    siblings = [each.rpartition(".")[2] for each in known if each.rpartition(".")[0] == above]
    of_its_kind = {each.rpartition(".")[2] for each in (tables() if isinstance(value, Mapping) else by_path())}
    if close := get_close_matches(name, [each for each in siblings if each in of_its_kind], 1, 0.6):
        return f"Did you mean {_deeper(f'{above}.{close[0]}'.lstrip('.'), value)}?"
    elsewhere = [each for each in known if each.endswith(f".{path}")] or [
        each for each in known if each.rpartition(".")[2] == name
    ]
    if elsewhere:
        return f"Did you mean {min(elsewhere, key=lambda each: (-_in_common(each, path), len(each)))}?"
    names = ", ".join(sorted(siblings)[:12])
    return f"Remove it; {above or 'the file'} has: {names}" if siblings else "Remove this setting"
