"""Older spellings of keys, still accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.settings.layering import deep_merge, find, nested, without
from tasker.settings.problems import SettingProblem

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
