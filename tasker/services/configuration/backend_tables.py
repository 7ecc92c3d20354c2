"""Checks of `[common.queues]` beyond the settings models: the backend's name, and tables without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from tasker.contracts.messaging import BackendSettings
from tasker.errors import TaskerError
from tasker.installed import backend_modules, installed_backends
from tasker.messaging.registry import load_backend
from tasker.settings.catalogue import tables
from tasker.settings.installed import declared_table
from tasker.settings.layering import find
from tasker.settings.problems import SettingProblem
from tasker.settings.tables.queues import QueueSettings

TABLE = "common.queues"
CHOSEN = f"{TABLE}.backend"


def backend_tables(values: Mapping[str, Any]) -> dict[str, BackendSettings]:
    """Return the tables below `common.queues` named after an installed backend without a model, by backend."""
    queues = find(values, TABLE, {})
    known = {*QueueSettings.model_fields, *(path.removeprefix(f"{TABLE}.") for path in tables())}
    unknown = {name: given for name, given in queues.items() if name not in known} if queues else {}
    installed = installed_backends() if unknown else []
    return {name: given for name, given in unknown.items() if name in installed and isinstance(given, Mapping)}


def backend_problems(
    tables: Mapping[str, BackendSettings], place_of: Callable[[str], str | None]
) -> list[SettingProblem]:
    """Return the problems that the backends' own `create` reports for these tables. It opens no connection."""
    return [problem for name, given in tables.items() if (problem := _problem(name, given, place_of))]


def choice_problems(values: Mapping[str, Any], place_of: Callable[[str], str | None]) -> list[SettingProblem]:
    """Return the problems of the chosen backend: not installed, or an invalid declaration of its settings.

    Its package may still lack a dependency, which `load_backend` reports.
    """
    name = find(values, CHOSEN)
    if not isinstance(name, str) or not name:
        return []
    if name in (installed := installed_backends()):
        return _declaration_problems(name, place_of)
    near = get_close_matches(name, installed, n=1)
    fix = f"Did you mean {near[0]}?" if near else "Choose one of them, or install the package that brings it"
    issue = f"No messaging backend of that name; installed: {', '.join(installed)}"
    return [SettingProblem(CHOSEN, name, issue, fix, place_of(CHOSEN))]


def _declaration_problems(name: str, place_of: Callable[[str], str | None]) -> list[SettingProblem]:
    try:
        declared_table(name, dict(backend_modules()).get(name))
    except Exception as error:  # a third-party declaration may raise anything
        fix = getattr(error, "hint", None) or "See tasker.contracts.messaging"
        return [SettingProblem(CHOSEN, name, str(error), fix, place_of(CHOSEN))]
    return []


def _problem(name: str, given: BackendSettings, place_of: Callable[[str], str | None]) -> SettingProblem | None:
    path = f"{TABLE}.{name}"
    try:
        load_backend(name, given)
    except TaskerError as error:
        return SettingProblem(path, given, error.message, error.hint or "See the error of the backend", place_of(path))
    except (TypeError, ValueError) as error:  # of a backend that leaves the check to its types
        return SettingProblem(
            path, given, f"The backend refuses it: {error}", "See the error of the backend", place_of(path)
        )
    return None
