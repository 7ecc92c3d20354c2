"""Which finished tasks go is said by four limits and a line for each exception."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.settings.check import check
from tasker.settings.nested import nested
from tasker.settings.retention import RetentionRule, retention_rules


def configured_rules(**values: Any) -> list[RetentionRule]:
    settings = check(nested({f"common.retention.{name}": value for name, value in values.items()})).settings
    assert settings is not None
    return list(retention_rules(settings.common.retention))


def test_without_configuration_nobody_looks() -> None:
    assert configured_rules() == []


def test_the_general_limits_are_a_rule_for_all() -> None:
    assert configured_rules(completed_days=30, failed_count=7) == [RetentionRule(completed_days=30, failed_count=7)]


def test_a_line_is_for_a_namespace_or_one_of_its_templates() -> None:
    lines = ["pay completed_days=7", "pay/charge failed_days=3  completed_count=2", "ledger"]

    assert configured_rules(rules=lines) == [
        RetentionRule(completed_days=7, namespace="pay"),
        RetentionRule(failed_days=3, completed_count=2, namespace="pay", template="charge"),
        RetentionRule(namespace="ledger"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Names no namespace"),
        ("completed_days=3", "Names no namespace"),
        ("pay/ completed_days=3", "Names no namespace"),
        ("pay days=3", "Unknown limit: days"),
        ("pay completed_days=0", "completed_days is not a number from 1 to 36500"),
        ("pay failed_count=x", "failed_count is not a number from 1 to 100000000"),
        ("pay failed_count", "failed_count is not a number"),
    ],
)
def test_a_line_with_a_mistake_is_refused_with_what_is_wrong(line: str, said: str) -> None:
    (problem,) = check(nested({"common.retention.rules": [line]})).problems

    assert said in str(problem.to_dict())
    assert "NAMESPACE completed_days=30" in str(problem.to_dict())
