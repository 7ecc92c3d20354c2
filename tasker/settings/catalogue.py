"""All parameters, read from the model, and which of them apply while a process runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

from tasker.dataclasses import dataclass
from tasker.settings.installed_tables import settings_model
from tasker.settings.model import Settings
from tasker.settings.nested import covering, find
from tasker.settings.refused_keys import REFUSED, RESERVED
from tasker.settings.table import NamedTables, Setting, Table, bare_type, types_of

ANY_NAME = "NAME"
"""Part of the path of a parameter that stands for the name of a table that the file chooses."""
_KINDS = {int: "whole number", float: "number", bool: "true or false", str: "text"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter. `variables` are the environment variables that supply its value if no file does, in order of
    precedence.

    `reserved` names the part that this version does not have and for which the parameter is refused. `single_process`
    is the default of `tasker run`, `tasker dev` and `App` if it differs. `overrules` is the path of the common setting
    that this setting of a backend's table overrides while that backend is chosen.
    """

    path: str
    kind: str
    default: Any
    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    advice: str | None = None
    variables: tuple[str, ...] = ()
    table: str = ""
    live: bool = False
    reserved: str | None = None
    single_process: Any = None
    overrules: str | None = None

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def range(self) -> str:
        """Allowed values in words."""
        if self.choices:
            return " | ".join(self.choices)
        return f"{_plain(self.low)} to {_plain(self.high)}" if self.low is not None else self.kind

    @property
    def related(self) -> tuple[str, ...]:
        """Other parameters of its table."""
        above = self.path.rpartition(".")[0]
        return tuple(
            parameter.path
            for parameter in parameters()
            if parameter.path.rpartition(".")[0] == above and parameter != self
        )


def parameters() -> tuple[Parameter, ...]:
    """Return all parameters in the order of the model, including those of the installed messaging backends."""
    return tuple(by_path().values())


def by_path() -> dict[str, Parameter]:
    """Return all parameters by dotted path."""
    return _by_path(settings_model())  # type: ignore[arg-type]


def tables() -> dict[str, str]:
    """Return the meaning of every table by dotted path."""
    return _meanings(settings_model())  # type: ignore[arg-type]


def accepted() -> list[str]:
    """Return the paths of all parameters and tables that a file may set."""
    paths = [*by_path(), *tables()]
    return [path for path in paths if covering(path, RESERVED) is None and covering(path, REFUSED) is None]


def pattern_of(path: str) -> str:
    """Return the path with `NAME` in place of the name of a table that the file chose, as `by_path` has it."""
    for table in tables():
        above, _, last = table.rpartition(".")
        if last == ANY_NAME and path.startswith(f"{above}."):
            _, _, below = path.removeprefix(f"{above}.").partition(".")
            return ".".join(filter(None, (above, ANY_NAME, below)))
    return path


def set_paths(*values: Mapping[str, Any]) -> Iterator[tuple[str, Parameter]]:
    """Yield (path, parameter) of all parameters; those of named tables for each name that is in one of `values`."""
    for path, parameter in by_path().items():
        above, named, below = path.partition(f".{ANY_NAME}.")
        if not named:
            yield path, parameter
            continue
        for name in dict.fromkeys(name for each in values for name in find(each, above, {})):
            yield f"{above}.{name}.{below}", parameter


@cache
def _by_path(model: type[Settings]) -> dict[str, Parameter]:
    return {parameter.path: parameter for parameter in _walk(model, "")}


@cache
def _meanings(model: type[Settings]) -> dict[str, str]:
    return dict(_tables(model, ""))


def _walk(kind: type[Table], prefix: str, live: bool = False) -> Iterator[Parameter]:
    for name, setting in kind.declared.items():
        is_live = setting.notes.get("live", live)
        if isinstance(setting.default, Table):
            yield from _walk(type(setting.default), f"{prefix}{name}.", is_live)
        elif isinstance(setting.default, NamedTables):
            yield from _walk(_named(kind, name), f"{prefix}{name}.{ANY_NAME}.", is_live)
        else:
            annotation = bare_type(types_of(kind)[name])  # type: ignore[arg-type]
            yield _parameter(f"{prefix}{name}", setting, annotation, (kind.__doc__ or "").strip(), is_live)


def _tables(kind: type[Table], prefix: str) -> Iterator[tuple[str, str]]:
    for name, setting in kind.declared.items():
        if isinstance(setting.default, Table):
            yield f"{prefix}{name}", (type(setting.default).__doc__ or "").strip()
            yield from _tables(type(setting.default), f"{prefix}{name}.")
        elif isinstance(setting.default, NamedTables):
            meaning = (_named(kind, name).__doc__ or "").strip()
            yield from ((f"{prefix}{name}", meaning), (f"{prefix}{name}.{ANY_NAME}", meaning))


def _named(kind: type[Table], name: str) -> type[Table]:
    (nested,) = get_args(bare_type(types_of(kind)[name]))  # type: ignore[arg-type]
    return nested  # type: ignore[no-any-return]


def _parameter(path: str, setting: Setting, kind: Any, table: str, live: bool) -> Parameter:
    variable: Any = setting.notes.get("variable") or ()
    return Parameter(
        path=path,
        kind="list" if get_origin(kind) is tuple else _KINDS.get(kind, "text"),
        default=setting.default,
        meaning=setting.meaning,
        low=setting.low,
        high=setting.high,
        choices=get_args(kind) if get_origin(kind) is Literal else (),
        advice=setting.notes.get("advice"),
        variables=(variable,) if isinstance(variable, str) else tuple(variable),
        table=table,
        live=live,
        reserved=covering(path, RESERVED),
        single_process=setting.notes.get("single_process"),
        overrules=setting.notes.get("overrules"),
    )


def _plain(value: float | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def is_live(path: str) -> bool:
    """Return whether a running process applies the parameter; a backend's setting follows the one that it overrides."""
    parameter = by_path().get(pattern_of(path))
    if parameter is not None and parameter.overrules:
        parameter = by_path().get(parameter.overrules)
    return parameter is not None and parameter.live


def single_process() -> dict[str, Any]:
    """Return the defaults of `tasker run`, `tasker dev` and `App` by path, where they differ.

    One process does everything there, and often no file exists. Every file and every variable overrides them.
    """
    return {path: each.single_process for path, each in by_path().items() if each.single_process is not None}
