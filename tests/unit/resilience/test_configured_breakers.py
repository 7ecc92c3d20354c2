"""Which thresholds a breaker has: its own where they are set, else those set for all, else its default (A-66)."""

from __future__ import annotations

from typing import Any

from tasker.app.configured.resilience import breaker_policies, storm_settings
from tasker.contracts.plan import BreakerPolicy
from tasker.orchestration.storms import StormSettings
from tasker.resilience.registry import BreakerPolicies
from tasker.settings.check import check
from tasker.settings.layering import nested
from tasker.settings.model import Settings

COMMON = "common.circuit_breakers"


def settings(**values: Any) -> Settings:
    found = check(nested({path.replace("__", "."): value for path, value in values.items()}))
    assert found.settings is not None, found.problems
    return found.settings


def policies(values: dict[str, Any]) -> BreakerPolicies:
    return breaker_policies(settings(**{f"{COMMON}.{path}": value for path, value in values.items()}))


def test_a_component_may_have_a_time_of_its_own_be_it_the_default() -> None:
    components = {"component_configs.task_readiness.timeout_seconds": 120, "component_configs.web.timeout_seconds": 30}
    found = policies({"default_config.timeout_seconds": 60, **components})
    times = [policy.timeout_seconds for policy in (found.messaging, found.task_readiness, found.database)]
    assert times == [60, 120, 30]


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
    assert storm_settings(Settings()) == StormSettings(failures=0)
    found = settings(common__failure_storm__failures=9, common__failure_storm__pauses="step")
    assert storm_settings(found) == StormSettings(9, 600, "step", 0)
