"""Import of a configuration written for a compatible system: the settings that apply, and why others do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasker.dataclasses import dataclass
from tasker.redaction import REDACTED, is_secret
from tasker.services.configuration.loading import ConfigurationInvalid, assemble
from tasker.services.configuration.sources import ConfigurationLayer
from tasker.settings.catalogue import is_live, set_paths
from tasker.settings.check import SettingProblem
from tasker.settings.inherited import resolved
from tasker.settings.model import Settings
from tasker.settings.nested import find, without
from tasker.settings.sources import variables_in
from tasker.settings.toml_text import toml_value

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """Parameter with its value as TOML, source and meaning; `live` means that a running server applies a change."""

    path: str
    value: str
    set_by: str
    meaning: str
    live: bool

    @property
    def is_set(self) -> bool:
        """True if the value is not the default."""
        return self.set_by != DEFAULT


def effective_settings(settings: Settings, origin: Callable[[str], str]) -> Sequence[EffectiveSetting]:
    """Return every parameter of this version, in the order of the reference."""
    values = resolved(settings).settings.to_dict()
    return [
        EffectiveSetting(path, _text(path, find(values, path)), origin(path), parameter.meaning, is_live(path))
        for path, parameter in set_paths(values)
        if not parameter.reserved
    ]


def _text(path: str, value: Any) -> str:
    if is_secret(path.rpartition(".")[2], value):
        return REDACTED
    return "" if value is None else toml_value(value)


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
        left_out += [issue for issue in problems if issue.path.partition("[")[0] not in open_texts]
        tried, taken = without(tried, paths), without(taken, paths - open_texts)
    return Imported(_without_empty(taken), [*layer.problems, *left_out])


def _problems(layer: ConfigurationLayer, context: str, environment: str) -> tuple[SettingProblem, ...]:
    """Return the problems a process would report for the file as it is, without any variables."""
    try:
        assemble(context, environment, [layer], {})
    except ConfigurationInvalid as error:
        if all(find(layer.tables, problem.path.partition("[")[0]) is None for problem in error.problems):
            raise
        return error.problems
    return ()


def _has_placeholder(value: Any) -> bool:
    return isinstance(value, str) and bool(variables_in(value))


def _without_empty(tables: Mapping[str, Any]) -> dict[str, Any]:
    cleaned = {key: _without_empty(value) if isinstance(value, Mapping) else value for key, value in tables.items()}
    return {key: value for key, value in cleaned.items() if value != {}}
