"""What a settings table and the object that processes use both have a default for stands in one place."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from tasker.contracts.settings import Table
from tasker.lifecycle.choices import Limits
from tasker.orchestration.dead_letters.staleness import StalenessLimits, StalenessSettings
from tasker.orchestration.sweeping.storms import StormSettings
from tasker.orchestration.sweeping.sweep import SweepSettings
from tasker.settings.tables import breakers, event_systems, growing, running

UNIT = re.compile(r"_(ms|seconds|minutes|hours)$")
CONSTANT = re.compile(r"[A-Z][A-Z_]+")

TABLES: list[tuple[type, type]] = [
    (SweepSettings, running.Sweep),
    (StormSettings, breakers.FailureStorm),
    (StalenessLimits, growing.Thresholds),
    (StalenessLimits, growing.BatchProcessing),
    (Limits, growing.DecisionPoints),
]
"""Objects and the tables that they are made from: fields of one name, but for the unit, are the same default."""

FIELDS: list[tuple[type, str, type, str]] = [
    (SweepSettings, "interval", event_systems.ReadinessTiming, "fallback_polling_interval"),
    (SweepSettings, "unserved", running.Sweep, "unserved_timeout"),
    (SweepSettings, "forget", running.Sweep, "forget_workers_after"),
    (StalenessSettings, "slice", growing.Staleness, "batch_size"),
    (StalenessSettings, "interval", growing.Staleness, "detection_interval"),
    (StalenessSettings, "channel", growing.Actions, "event_channel"),
    (Limits, "warn_steps_per_decision", growing.DecisionPoints, "warn_threshold_steps"),
]
"""The same default under two names."""

NOT_ONE: set[tuple[type, str]] = {(Limits, "max_decision_depth")}
"""Code that is used without settings lets decisions go less deep."""


def defaults(owner: type) -> dict[str, ast.expr]:
    """The defaults in the source of a class, by field without its unit; of a table's what its kind is given first."""
    (body,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for line in body.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            kind = line.value if isinstance(line.value, ast.Call) and issubclass(owner, Table) else None
            found[UNIT.sub("", line.target.id)] = kind.args[0] if kind else line.value
    return found


def same_default() -> list[tuple[type, str, type, str]]:
    shared = [
        (owner, name, table, name)
        for owner, table in TABLES
        for name in defaults(owner).keys() & defaults(table).keys()
        if (owner, name) not in NOT_ONE
    ]
    return sorted([*shared, *FIELDS], key=str)


def constants(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name) and CONSTANT.fullmatch(node.id)}


def is_switch(value: ast.expr) -> bool:
    """On, off, and 0 for off need no name."""
    return isinstance(value, ast.Constant) and value.value in (0, False, True)


@pytest.mark.parametrize(("owner", "name", "table", "key"), same_default())
def test_a_default_that_settings_and_code_share_is_one_constant(owner: type, name: str, table: type, key: str) -> None:
    in_code, in_settings = defaults(owner)[name], defaults(table)[key]

    if is_switch(in_code) and is_switch(in_settings):
        assert ast.unparse(in_code) == ast.unparse(in_settings)
    else:
        assert constants(in_code) == constants(in_settings) != set()


@pytest.mark.parametrize(("owner", "table"), TABLES)
def test_an_object_shares_defaults_with_each_table_it_is_made_from(owner: type, table: type) -> None:
    assert defaults(owner).keys() & defaults(table).keys()
