"""Import of a configuration written for a compatible system: the settings that apply, and why others do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.services.configuration.loading import ConfigurationInvalid, assemble
from tasker.services.configuration.sources import ConfigurationLayer
from tasker.settings.layering import find, without
from tasker.settings.problems import SettingProblem
from tasker.settings.substitution import variables_in

SUMMARY = "# From {name}: {left} of its settings are left out, see `tasker config import`.\n"


@dataclass(frozen=True, slots=True)
class Imported:
    """Imported configuration: `tables` that apply, with their placeholders, and the problem of each key `left_out`."""

    tables: Mapping[str, Any]
    left_out: Sequence[SettingProblem]


def imported(layer: ConfigurationLayer, context: str, environment: str) -> Imported:
    """Return the settings of a file that a process of the context would accept.

    A text with a placeholder is accepted as it is: its variable may be set elsewhere. Raises `ConfigurationInvalid` for
    a problem that belongs to no key of the file.
    """
    taken, tried, left_out = layer.tables, layer.tables, list[SettingProblem]()
    while problems := _problems(replace(layer, tables=tried, problems=()), context, environment):
        paths = frozenset(problem.path.partition("[")[0] for problem in problems)
        open_texts = {path for path in paths if _has_placeholder(find(tried, path))}
        left_out += [each for each in problems if each.path.partition("[")[0] not in open_texts]
        tried, taken = without(tried, paths), without(taken, paths - open_texts)
    return Imported(_without_empty(taken), [*layer.problems, *left_out])


def _problems(layer: ConfigurationLayer, context: str, environment: str) -> tuple[SettingProblem, ...]:
    """Return the problems a process would report for the file as it is, without any variables."""
    try:
        assemble(context, environment, [layer], {})
    except ConfigurationInvalid as error:
        if all(find(layer.tables, each.path.partition("[")[0]) is None for each in error.problems):
            raise
        return error.problems
    return ()


def _has_placeholder(value: Any) -> bool:
    return isinstance(value, str) and bool(variables_in(value))


def _without_empty(tables: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: _without_empty(value) if isinstance(value, Mapping) else value for key, value in tables.items()}
    return {key: value for key, value in kept.items() if value != {}}
