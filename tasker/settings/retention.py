"""Rules for how long finished tasks are retained, and their form in a configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

from tasker.dataclasses import dataclass

if TYPE_CHECKING:
    from tasker.settings.database import Retention

LIMITS = {
    "completed_days": 36_500,
    "failed_days": 36_500,
    "completed_count": 100_000_000,
    "failed_count": 100_000_000,
    "pending_days": 36_500,
}
"""Limits that a rule may set, with the largest value of each."""
FORM = '"NAMESPACE completed_days=30" or "NAMESPACE/TEMPLATE completed_count=1000 failed_days=365"'


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Limits after which finished tasks are deleted. None: no limit; of two limits, the stricter one applies.

    Without `namespace` and `template` the rule applies to all tasks. A rule for a template overrides one for its
    namespace. Counts are per version of a template.
    """

    completed_days: float | None = None
    failed_days: float | None = None
    """Limit for tasks that ended in any other state than `complete`."""
    completed_count: int | None = None
    failed_count: int | None = None
    pending_days: float | None = None
    """Days for which a pending dead letter keeps its task from being deleted. None: as long as it is pending."""
    namespace: str | None = None
    template: str | None = None

    @property
    def limits(self) -> bool:
        """Return whether the rule allows any deletion."""
        return (self.completed_days, self.failed_days, self.completed_count, self.failed_count) != (None,) * 4

    @classmethod
    def parse(cls, line: str) -> Self:
        """Parse a line like `payments/charge completed_days=30`; without a limit, all matching tasks are retained.

        Raises `ValueError` that describes the problem.
        """
        target, *limits = line.split() or [""]
        namespace, slash, template = target.partition("/")
        if not namespace or "=" in target or (slash and not template):
            raise ValueError("Names no namespace")
        return cls(namespace=namespace, template=template or None, **dict(map(_limit, limits)))


def _limit(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if name not in LIMITS:
        raise ValueError(f"Unknown limit: {name}")
    if not re.fullmatch(r"[0-9]{1,9}", value, re.ASCII) or not 1 <= int(value) <= LIMITS[name]:
        raise ValueError(f"{name} is not a number from 1 to {LIMITS[name]}")
    return name, int(value)


def retention_rules(settings: Retention) -> tuple[RetentionRule, ...]:
    """Return the rules for deleting finished tasks: those of namespaces and templates, then the general one, if any."""
    general = RetentionRule(**{name: getattr(settings, name) or None for name in LIMITS})
    return (*map(RetentionRule.parse, settings.rules), *((general,) if general.limits else ()))
