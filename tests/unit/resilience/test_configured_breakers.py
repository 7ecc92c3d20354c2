"""Which thresholds a breaker has: its own where they are set, else those set for all, else its default."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.app.configured import configured
from tasker.resilience.breakers import BreakerPolicies
from tasker.settings.breakers import FailureStorm
from tasker.settings.check import check
from tasker.settings.installed_tables import settings_model
from tasker.settings.model import Settings
from tasker.settings.nested import nested
from tasker.template.plan import BreakerPolicy

COMMON = "common.circuit_breakers"


def settings(**values: Any) -> Settings:
    found = check(nested({path.replace("__", "."): value for path, value in values.items()}))
    assert found.settings is not None, found.problems
    return found.settings


def policies(values: dict[str, Any]) -> BreakerPolicies:
    return configured(settings(**{f"{COMMON}.{path}": value for path, value in values.items()})).breakers


def test_a_component_may_have_a_time_of_its_own_be_it_the_default() -> None:
    components = {"component_configs.task_readiness.timeout_seconds": 120, "component_configs.web.timeout_seconds": 30}
    found = policies({"default_config.timeout_seconds": 60, **components})
    times = [policy.timeout_seconds for policy in (found.messaging, found.task_readiness, found.database)]
    assert times == [60, 120, 30]


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("conservative", BreakerPolicy(2, 120, 5)),
        ("balanced", BreakerPolicy(5, 60, 3)),
        ("aggressive", BreakerPolicy(10, 30, 2)),
        ("database", BreakerPolicy(3, 30, 2)),
    ],
)
def test_a_preset_sets_all_three_for_one_component_or_for_all(preset: str, expected: BreakerPolicy) -> None:
    assert policies({"default_config.preset": preset}).task_readiness == expected
    one = policies({"component_configs.web.preset": preset, "default_config.failure_threshold": 99})
    assert (one.database, one.messaging) == (expected, BreakerPolicy(99, 30, 2))


def test_what_is_set_beside_a_preset_counts_above_it() -> None:
    found = policies({"default_config.preset": "balanced", "default_config.timeout_seconds": 9})
    assert found.messaging == BreakerPolicy(5, 9, 3)
    own = policies({"default_config.preset": "balanced", "component_configs.messaging.success_threshold": 1})
    assert (own.messaging, own.database) == (BreakerPolicy(5, 60, 1), BreakerPolicy(5, 60, 3))


def test_unset_every_component_has_its_own_default_and_the_timeout_of_all() -> None:
    found = policies({"default_config.timeout_seconds": 60})
    assert found.messaging == found.database == BreakerPolicy(5, 60, 2)
    assert found.task_readiness == BreakerPolicy(10, 60, 3)
    assert found.completion == BreakerPolicy(5, 5, 2), "it has a time of its own"


def test_what_is_set_for_all_counts_where_a_component_says_nothing() -> None:
    found = policies({"default_config.failure_threshold": 7, "component_configs.web.failure_threshold": 3})
    assert (found.messaging.failure_threshold, found.task_readiness.failure_threshold) == (7, 7)
    assert found.database == BreakerPolicy(3, 30, 2)


def test_a_component_s_own_threshold_wins() -> None:
    assert policies({"component_configs.messaging.success_threshold": 4}).messaging.success_threshold == 4


def test_storms_are_off_until_a_number_is_set() -> None:
    assert configured(settings_model()()).sweeps.bursts == FailureStorm(failures=0)
    found = settings(common__failure_storm__failures=9, common__failure_storm__pauses="step")
    assert configured(found).sweeps.bursts == FailureStorm(failures=9, window_seconds=600, pauses="step")
