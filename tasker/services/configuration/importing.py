"""A configuration that was written for another system of this kind: what counts here, and why the rest does not."""

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
    """`tables` are what counts, with placeholders as they were written; `left_out` is why each other key does not."""

    tables: Mapping[str, Any]
    left_out: Sequence[SettingProblem]


def imported(layer: ConfigurationLayer, context: str, environment: str) -> Imported:
    """What counts of a file: all that a process of the context would accept.

    A text with a placeholder is taken as it is: its variable may be set elsewhere. Raises `ConfigurationInvalid` for
    what is wrong and belongs to no key of the file.
    """
    taken, tried, left_out = layer.tables, layer.tables, list[SettingProblem]()
    while problems := _problems(replace(layer, tables=tried, problems=()), context, environment):
        paths = frozenset(problem.path.partition("[")[0] for problem in problems)
        open_texts = {path for path in paths if _has_placeholder(find(tried, path))}
        left_out += [each for each in problems if each.path.partition("[")[0] not in open_texts]
        tried, taken = without(tried, paths), without(taken, paths - open_texts)
    return Imported(_without_empty(taken), [*layer.problems, *left_out])


def _problems(layer: ConfigurationLayer, context: str, environment: str) -> tuple[SettingProblem, ...]:
    """What a process would refuse of the file as it stands, without any variable."""
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
