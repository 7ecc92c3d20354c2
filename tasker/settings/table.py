"""Declaration of settings: a frozen base class for tables, one function per kind of value, checks of texts.

A setting is declared once, with default, bounds and text, and whoever uses it takes the table itself: an attribute of
the class is the default, an attribute of an instance the value. Tasker's own settings use this module, and so do the
tables of messaging backends and plugins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import urlsplit

from tasker.dataclasses import dataclass
from tasker.settings.addresses import ENCODE_URL, is_clear_url


class Substituted(str):
    """Text from a `${...}` placeholder: only such text is accepted for a number, a boolean or a list."""

    __slots__ = ()


class _Required:
    """Default of a setting that has none."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Declaration of a setting or of a nested table. `shortest` is the least length of a text or list."""

    default: Any
    meaning: str = ""
    low: float | None = None
    high: float | None = None
    shortest: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Issue:
    """Problem of a value. `kind` is `unknown` (no such setting), `type`, or `value`, which has an issue and a fix."""

    location: tuple[str | int, ...]
    value: Any
    kind: Literal["unknown", "type", "value"]
    issue: str = ""
    fix: str = ""


class InvalidTable(ValueError):
    """Values that a table does not accept, with all issues."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        super().__init__(
            "; ".join(f"{'.'.join(map(str, each.location))}: {each.issue or each.kind}" for each in issues)
        )
        self.issues = issues


class RefusedValue(ValueError):
    """Value that a check refuses."""

    def __init__(self, issue: str, fix: str) -> None:
        super().__init__(f"{issue}: {fix}")
        self.issue, self.fix = issue, fix


@dataclass(frozen=True, slots=True)
class Check:
    """Annotation of a type with a function that returns the value to use, or raises what `refused` returns."""

    function: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Annotation of the type of a list's numbers with their bounds."""

    low: float | None
    high: float | None


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Table:
    """One TOML table, frozen. `Kind(name=value)` takes values as they are; `Kind.parse` checks them."""

    declared: ClassVar[Mapping[str, Setting]] = MappingProxyType({})
    """Its settings and nested tables by name."""

    def __init_subclass__(cls) -> None:
        own = {}
        for name in (name for name in vars(cls).get("__annotations__", {}) if not name.startswith("_")):
            value = vars(cls).get(name, _Required)
            own[name] = value if isinstance(value, Setting) else Setting(value)
            if own[name].default is not _Required:
                setattr(cls, name, own[name].default)
        cls.declared = {**cls.declared, **own}

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - self.declared.keys():
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(sorted(unknown))}")
        vars(self).update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot assign to {name!r}: settings are frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.declared)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.declared))

    def __repr__(self) -> str:
        """Show what is set; texts may be secrets, so they are not shown."""
        shown = (f"{name}={'...' if isinstance(value, (str, tuple)) else value}" for name, value in vars(self).items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def is_set(self, name: str) -> bool:
        """Return whether the setting was set, even to its default."""
        return name in vars(self)

    def replace(self, **values: Any) -> Self:
        """Return a copy with other values."""
        return type(self)(**{**vars(self), **values})

    def without(self, name: str) -> Self:
        """Return a copy in which a setting is not set."""
        return type(self)(**{other: value for other, value in vars(self).items() if other != name})

    def to_dict(self, *, only_set: bool = False) -> dict[str, Any]:
        """Return the settings as nested dicts and lists."""
        names = [name for name in self.declared if not only_set or name in vars(self)]
        return {name: _plain(getattr(self, name), only_set) for name in names}

    def check(self) -> None:
        """Check settings against each other: override it, and raise what `refused` returns."""

    @classmethod
    def for_single_process(cls) -> Self:
        """Return the defaults of `tasker run`, `tasker dev` and `App`, where one process does everything.

        Only what differs from the other defaults is set.
        """
        values: dict[str, Any] = {}
        for name, setting in cls.declared.items():
            if isinstance(setting.default, Table):
                nested = setting.default.for_single_process()
                values |= {name: nested} if vars(nested) else {}
            elif "single_process" in setting.notes:
                values[name] = setting.notes["single_process"]
        return cls(**values)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Return the table with these values. Raises `InvalidTable` with all issues."""
        issues: list[Issue] = []
        made: Self = _table(cls, values, (), issues)
        if issues:
            raise InvalidTable(issues)
        return made


T = TypeVar("T", bound=Table)


class NamedTables(Mapping[str, T]):
    """Tables of one kind, each under a name that the file chooses."""

    def __init__(self, tables: Mapping[str, T] = MappingProxyType({})) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> T:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __hash__(self) -> int:
        return hash(tuple(self._tables.items()))


def _plain(value: Any, only_set: bool) -> Any:
    if isinstance(value, Table):
        return value.to_dict(only_set=only_set)
    if isinstance(value, NamedTables):
        return {name: table.to_dict(only_set=only_set) for name, table in value.items()}
    return [_plain(entry, only_set) for entry in value] if isinstance(value, tuple) else value


@cache
def types_of(kind: type[Table]) -> Mapping[str, Any]:
    """Return the types of the settings of a subclass of `Table`, with their checks."""
    return get_type_hints(kind, include_extras=True)


def bare_type(annotation: Any) -> Any:
    """Return the type without its checks."""
    return annotation.__origin__ if get_origin(annotation) is Annotated else annotation


_INVALID: Any = object()


def _table(kind: type[Table], values: Any, location: tuple[str | int, ...], issues: list[Issue]) -> Any:
    if isinstance(values, kind):
        return values
    if not isinstance(values, Mapping):
        issues.append(Issue(location, values, "type"))
        return _INVALID
    before, made, types = len(issues), {}, types_of(kind)  # type: ignore[arg-type]
    for name, setting in kind.declared.items():
        if name in values:
            made[name] = _value(types[name], setting, values[name], (*location, name), issues)
        elif setting.default is _Required:
            issues.append(Issue((*location, name), values, "value", "Missing", "Set it"))
    issues += [Issue((*location, name), values[name], "unknown") for name in values if name not in kind.declared]
    if len(issues) > before:
        return _INVALID
    table = kind(**made)
    try:
        table.check()
    except RefusedValue as error:
        issues.append(Issue(location, values, "value", error.issue, error.fix))
    return table


def _value(annotation: Any, setting: Setting, value: Any, location: tuple[str | int, ...], issues: list[Issue]) -> Any:
    kind = bare_type(annotation)
    checks = annotation.__metadata__ if kind is not annotation else ()
    before = len(issues)
    if isinstance(kind, type) and issubclass(kind, Table):
        return _table(kind, value, location, issues)
    if get_origin(kind) is NamedTables:
        return _named_tables(get_args(kind)[0], value, location, issues)
    if get_origin(kind) is tuple:
        result = _list(get_args(kind)[0], value, location, issues)
    else:
        result = _typed(kind, _substituted(kind, value) if isinstance(value, Substituted) else value)
    if result is _INVALID:
        issues.append(Issue(location, value, "type"))
    if len(issues) > before:
        return _INVALID
    try:
        if isinstance(result, (str, tuple)) and len(result) < setting.shortest:
            raise RefusedValue("Must not be empty", "Write at least one value, or remove the setting")
        for check in (Bounds(setting.low, setting.high), *checks):
            result = _bounded(check, result) if isinstance(check, Bounds) else check.function(result)
    except RefusedValue as error:
        issues.append(Issue(location, value, "value", error.issue, error.fix))
    return result


def _list(annotation: Any, value: Any, location: tuple[str | int, ...], issues: list[Issue]) -> Any:
    """Return the entries of a list; a placeholder's text is split at commas."""
    if isinstance(value, Substituted):
        value = [Substituted(part.strip()) for part in value.split(",") if part.strip()]
    if not isinstance(value, (list, tuple)):
        return _INVALID
    entries = enumerate(value)
    return tuple(_value(annotation, _ENTRY, entry, (*location, position), issues) for position, entry in entries)


_ENTRY = Setting(None)
_TABLE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*", re.ASCII)


def _named_tables(kind: type[Table], values: Any, location: tuple[str | int, ...], issues: list[Issue]) -> Any:
    if isinstance(values, NamedTables):
        return values
    if not isinstance(values, Mapping):
        issues.append(Issue(location, values, "type"))
        return _INVALID
    before, tables = len(issues), {}
    for name, value in values.items():
        if not _TABLE_NAME.fullmatch(name):
            issues.append(Issue((*location, name), value, "value", "Not a valid name", "Use A-Z a-z 0-9 _ -"))
        elif not isinstance(value, (Mapping, kind)):
            where = ".".join(map(str, (*location, name)))
            issues.append(Issue((*location, name), value, "value", "Expected a table", f"Write [{where}]"))
        else:
            tables[name] = _table(kind, value, (*location, name), issues)
    return _INVALID if len(issues) > before else NamedTables(tables)


def _typed(kind: Any, value: Any) -> Any:
    if get_origin(kind) is Literal:
        return value if isinstance(value, str) and value in get_args(kind) else _INVALID
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < 2**63 else math.inf
    return value if isinstance(value, kind) and type(value) in (kind, Substituted) and _is_finite(value) else _INVALID


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _substituted(kind: Any, text: Substituted) -> Any:
    """Return the value of a placeholder's text; of another type than expected, the text itself."""
    with suppress(KeyError, ValueError):
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind in (int, float):
            return kind(text)
    return str(text)


def _bounded(bounds: Bounds, value: Any) -> Any:
    if bounds.high is not None and value > bounds.high:
        raise RefusedValue(f"Exceeds maximum allowed value ({bounds.high})", f"Reduce to {bounds.high} or less")
    if bounds.low is not None and value < bounds.low:
        raise RefusedValue(f"Below minimum allowed value ({bounds.low})", f"Increase to {bounds.low} or more")
    return value


def whole(default: int, low: int, high: int, meaning: str, **notes: Any) -> Any:
    """Declare an integer from `low` to `high`; the name ends with its unit, if it has one.

    `notes` of this and the other kinds: `advice`, further explanation; `live`, whether a running process applies a
    change (default: as the table around it); `single_process`, the default of `tasker run`, `tasker dev` and `App` if
    it differs; `variable`, the environment variable that supplies the value if no file does; `overrules`, the path of
    the common setting that this setting of a backend's table overrides while that backend is chosen (it has the same
    kind and range).
    """
    return Setting(default, meaning, low, high, notes=notes)


def number(default: float, low: float, high: float, meaning: str, **notes: Any) -> Any:
    """Declare a number from `low` to `high`."""
    return Setting(default, meaning, low, high, notes=notes)


def flag(default: bool, meaning: str, **notes: Any) -> Any:
    """Declare a boolean."""
    return Setting(default, meaning, notes=notes)


def text(default: str, meaning: str, *, shortest: int = 1, **notes: Any) -> Any:
    """Declare a text of at least `shortest` characters."""
    return Setting(default, meaning, shortest=shortest, notes=notes)


def choice(default: str, meaning: str, **notes: Any) -> Any:
    """Declare one of the values that the annotation lists."""
    return Setting(default, meaning, notes=notes)


def several(default: tuple[Any, ...], meaning: str, *, shortest: int = 0, **notes: Any) -> Any:
    """Declare a list, which replaces the list of a lower layer completely."""
    return Setting(default, meaning, shortest=shortest, notes=notes)


def table(kind: type[Table], **notes: Any) -> Any:
    """Declare a nested table."""
    return Setting(kind(), notes=notes)


def named_tables(**notes: Any) -> Any:
    """Declare tables whose names the configuration file chooses; the annotation has their kind."""
    return Setting(NamedTables(), notes=notes)


def refused(issue: str, fix: str) -> RefusedValue:
    """Return the error for a check to raise: issue and fix, both beginning with a capital letter."""
    return RefusedValue(issue, fix)


def url_of(*schemes: str, separator: str | None = None) -> Check:
    """Check a URL, or several of them between separators: all but the first may omit the scheme."""

    def check(value: str) -> str:
        if not _begins_with(schemes, value):
            names = " or ".join(f"{name}://" for name in schemes)
            raise refused(f"Expected a URL that begins with {names}", "Write the whole URL")
        if not all(map(is_clear_url, value.split(separator) if separator else [value])):
            raise unclear(ENCODE_URL)
        return value

    return Check(check)


def unclear(fix: str) -> RefusedValue:
    """Return the error for a URL in which the end of the password is ambiguous."""
    return refused("The URL cannot be parsed", f"{fix[:1].upper()}{fix[1:]}")


def _begins_with(schemes: Sequence[str], value: str) -> bool:
    with suppress(ValueError):  # an unbalanced bracket raises
        parts = urlsplit(value)
        return parts.scheme in schemes and bool(parts.netloc or (parts.scheme == "unix" and parts.path))
    return False


def _name_prefix(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_]+", value, re.ASCII):
        return value
    raise refused("Contains a character other than letters, digits and '_'", "Use A-Z a-z 0-9 _")


NamePrefix = Annotated[str, Check(_name_prefix)]
"""First part of names on a server that several databases share."""
