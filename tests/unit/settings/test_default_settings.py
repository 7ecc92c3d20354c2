"""What a settings table and the object that processes use both have a default for stands in one place."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from tasker.app.configured import UNCONFIGURED
from tasker.engine.expansion.choices import ExpansionLimits
from tasker.engine.fleet_rules import FleetRules
from tasker.execution.attempt.capacity import CapacityWaits
from tasker.execution.settings import WorkerSettings
from tasker.messaging.listening_modes import EventSettings
from tasker.messaging.queues import QueueNames
from tasker.resilience.breakers import BreakerPolicies
from tasker.settings import breakers, queues
from tasker.settings import execution as running
from tasker.settings import listening as event_systems
from tasker.settings import queues as channels
from tasker.settings.catalogue import by_path, single_process
from tasker.settings.execution import Lease
from tasker.settings.table import Table, table
from tasker.template.plan import BreakerPolicy, RetryPolicy
from tasker_pgmq.table import PgmqTable

UNIT = re.compile(r"_(ms|seconds|minutes|hours)$")
CONSTANT = re.compile(r"[A-Z][A-Z_]+")

TABLES: list[tuple[type, type]] = [
    (BreakerPolicy, breakers.BreakerSettings),
    (BreakerPolicy, breakers.BreakerThresholds),
    (BreakerPolicy, breakers.CompletionSend),
    (EventSettings, event_systems.Timing),
    (EventSettings, event_systems.WorkerSystem),
]
"""Objects and the tables that they are made from: fields of one name, but for the unit, are the same default."""

FIELDS: list[tuple[type, str, type, str]] = [
    (BreakerPolicies, "settle", breakers.AllBreakers, "min_state_transition_interval"),
    (BreakerPolicy, "timeout", breakers.ReadinessThresholds, "timeout"),
    (EventSettings, "poll", event_systems.FallbackPoller, "polling_interval"),
    (EventSettings, "lost_poll", queues.QueueSettings, "poll_interval"),
    (EventSettings, "lost_poll", PgmqTable, "poll_interval"),
    (FleetRules, "hidden", queues.QueueSettings, "default_visibility_timeout"),
    (RetryPolicy, "multiplier", running.Backoff, "backoff_multiplier"),
    (CapacityWaits, "grace", Lease, "grace"),
    (CapacityWaits, "starvation", channels.HandOff, "starvation_warning_threshold"),
    (QueueNames, "task_requests", queues.OrchestrationQueues, "task_requests"),
    (QueueNames, "step_results", queues.OrchestrationQueues, "step_results"),
    (QueueNames, "task_finalizations", queues.OrchestrationQueues, "task_finalizations"),
]
"""The same default under two names."""

NOT_ONE: set[tuple[type, str]] = set()
"""Without settings a server is at no address, and `OF_A_SINGLE_PROCESS` says why decisions are less deep."""

OF_A_SINGLE_PROCESS: dict[str, tuple[Callable[[], Any], str]] = {
    "orchestration.decision_points.max_decision_depth": (
        lambda: ExpansionLimits().decisions.max_decision_depth,
        "20 is the published default of the setting; what `config init` writes, and so a process without a "
        "configuration, has the three of the published guide",
    ),
    "orchestration.decision_points.warn_threshold_depth": (
        lambda: ExpansionLimits().decisions.warn_threshold_depth,
        "as the depth itself: 10 is the published default of the setting, two that of the guide",
    ),
    "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers": (
        lambda: WorkerSettings().dispatch.max_concurrent_handlers,
        "a worker of a fleet shares the work with others, and takes as much as was published; who runs a workflow in "
        "one process has no other worker",
    ),
    "worker.circuit_breakers.ffi_completion_send.slow_send_threshold_ms": (
        lambda: BreakerPolicies().slow_completion_ms,
        "in a fleet a database that takes a tenth of a second for a result is overloaded; beside an embedded one the "
        "disk does other things as well",
    ),
    "common.backoff.max_backoff_seconds": (
        lambda: RetryPolicy().max_backoff_ms // 1000,
        "a step that says nothing waits in one process, whose user looks on, as a `retry` block that says nothing "
        "means it; in a fleet by a list of delays, which the setting does not cut",
    ),
    "common.queues.queue_depth_thresholds.critical_threshold": (
        lambda: UNCONFIGURED.depth_limits.critical_threshold,
        "a fleet refuses what it cannot work off; a program works off what it has submitted itself",
    ),
    "common.queues.queue_depth_thresholds.overflow_threshold": (
        lambda: UNCONFIGURED.depth_limits.overflow_threshold,
        "as the critical one",
    ),
}
"""Numbers that mean two things: an object without settings has that of a single process; why a fleet has another."""


def defaults(owner: type) -> dict[str, ast.expr]:
    """The defaults in the source of a class, by field without its unit; of a table's what its kind is given first."""
    (body,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for line in body.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            kind = line.value if isinstance(line.value, ast.Call) and issubclass(owner, Table) else None
            if not is_nested(kind):
                found[UNIT.sub("", line.target.id)] = kind.args[0] if kind else line.value
    return found


def is_nested(kind: ast.Call | None) -> bool:
    return kind is not None and isinstance(kind.func, ast.Name) and kind.func.id == table.__name__


def same_default() -> list[tuple[type, str, type, str]]:
    shared = [
        (owner, name, settings, name)
        for owner, settings in TABLES
        for name in defaults(owner).keys() & defaults(settings).keys()
        if (owner, name) not in NOT_ONE
    ]
    return sorted([*shared, *FIELDS], key=str)


def constants(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name) and CONSTANT.fullmatch(node.id)}


def needs_no_name(value: ast.expr) -> bool:
    """On, off, 0 for off, and nothing."""
    return ast.unparse(value) in ("True", "False", "0", "''", "()")


@pytest.mark.parametrize(("owner", "name", "settings", "key"), same_default())
def test_a_default_that_settings_and_code_share_is_one_constant(
    owner: type, name: str, settings: type, key: str
) -> None:
    in_code, in_settings = defaults(owner)[name], defaults(settings)[key]

    if needs_no_name(in_code) and needs_no_name(in_settings):
        assert ast.unparse(in_code) == ast.unparse(in_settings)
    else:
        taken = [ast.unparse(node) for node in ast.walk(in_code) if isinstance(node, ast.Attribute)]
        shared = constants(in_code) & constants(in_settings)
        assert shared or any(key in each and each[0].isupper() for each in taken)


@pytest.mark.parametrize("path", OF_A_SINGLE_PROCESS)
def test_without_settings_an_object_is_that_of_a_single_process(path: str) -> None:
    without_settings, _ = OF_A_SINGLE_PROCESS[path]
    assert without_settings() == single_process()[path] != by_path()[path].default


def test_every_number_that_a_single_process_has_for_itself_is_among_them() -> None:
    numbers = {path for path, value in single_process().items() if type(value) is int}
    assert numbers == OF_A_SINGLE_PROCESS.keys()


@pytest.mark.parametrize(("owner", "settings"), TABLES)
def test_an_object_shares_defaults_with_each_table_it_is_made_from(owner: type, settings: type) -> None:
    assert defaults(owner).keys() & defaults(settings).keys()
