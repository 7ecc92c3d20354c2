"""Settings with a table for each installed messaging backend and each plugin that declares one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from tasker.errors import BackendUnavailable
from tasker.installed import backend_modules
from tasker.plugins.found import is_not_excluded, load, table_or_none
from tasker.settings.model import Common, Plugins, Settings
from tasker.settings.queues import QueueSettings
from tasker.settings.table import Table, table

T = TypeVar("T", bound=Table)


def settings_model() -> type[Settings]:
    """Return `Settings` with the tables of installed backends in `common.queues` and of plugins in `plugins`."""
    return _model(_tables(tuple(sys.path)), plugin_tables())


def plugin_tables() -> tuple[tuple[str, type[Table]], ...]:
    """Return (name, table) of the plugins that are not excluded and have settings."""
    tables = ((plugin.name, table_or_none(load(plugin))) for plugin in is_not_excluded())
    return tuple((name, kind) for name, kind in tables if kind is not None)


def declared_table(name: str, module: Any) -> type[Table] | None:
    """Return a backend module's table for `[common.queues.NAME]`, or None if it declares none.

    Raises `BackendUnavailable` if it is not a table, uses a variable that `VARIABLES` lacks, or has a name that the
    settings use for something else.
    """
    declare = getattr(module, "settings_table", None)
    if declare is None:
        return None
    kind = declare()
    if not (isinstance(kind, type) and issubclass(kind, Table)):
        raise _refused(name, f"settings_table() returned {kind!r}", "it must return a subclass of Table")
    if not name.replace("-", "_").isidentifier() or name.startswith("_") or hasattr(QueueSettings, name):
        raise _refused(
            name, "the name is not valid for a table", "use a-z 0-9 _ -, and no name that [common.queues] has"
        )
    if name in QueueSettings.declared:
        raise _refused(name, f"common.queues.{name} is a setting already", "register it under another name")
    lacking = _variables(kind) - {*getattr(module, "VARIABLES", ())}
    if lacking:
        raise _refused(name, f"VARIABLES lacks {', '.join(sorted(lacking))}", "list every variable of the table there")
    return kind


def _refused(name: str, issue: str, hint: str) -> BackendUnavailable:
    return BackendUnavailable(f"the settings of messaging backend {name!r}: {issue}", retryable=False, hint=hint)


def overruling(kind: type[Table]) -> set[str]:
    """Return the dotted paths of the settings in a backend's table that override settings for all backends."""
    return {path for path, notes in _notes(kind) if "overrules" in notes}


def _variables(kind: type[Table]) -> set[str]:
    declared = [notes.get("variable", ()) for _, notes in _notes(kind)]
    return {name for names in declared for name in ((names,) if isinstance(names, str) else names)}


def _notes(kind: type[Table], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (dotted path, notes) of every setting."""
    for name, setting in kind.declared.items():
        if isinstance(setting.default, Table):
            yield from _notes(type(setting.default), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", setting.notes


@cache
def _tables(path: tuple[str, ...]) -> tuple[tuple[str, type[Table]], ...]:
    """Return (name, table) of the backends on a search path; an invalid table is reported when it is chosen."""
    tables = ((name, _usable(name, module)) for name, module in backend_modules())
    return tuple((name, kind) for name, kind in tables if kind is not None)


def _usable(name: str, module: Any) -> type[Table] | None:
    try:
        return declared_table(name, module)
    except Exception:  # errors of a third-party package that may not even be chosen
        return None


@cache
def _model(
    backends: tuple[tuple[str, type[Table]], ...], plugins: tuple[tuple[str, type[Table]], ...]
) -> type[Settings]:
    common = _extended(Common, [("queues", _extended(QueueSettings, backends))])
    return _extended(Settings, [("common", common), ("plugins", _extended(Plugins, plugins))])


def _extended(kind: type[T], tables: Iterable[tuple[str, type[Table]]]) -> type[T]:
    types = dict(tables)
    declared = {name: table(nested) for name, nested in types.items()}
    return type(kind.__name__, (kind,), {"__doc__": kind.__doc__, "__annotations__": types, **declared})
