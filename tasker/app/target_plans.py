"""From what a submission names to a compiled plan."""

from __future__ import annotations

from pathlib import Path

from tasker.contracts.plan import Plan, RetryPolicy
from tasker.handler import HandlerRegistry
from tasker.services.handlers import add_handlers_beside
from tasker.services.plans import PlanStore
from tasker.services.targets import choose_plan, registered_name
from tasker.services.templates import load_plans


class TargetPlans:
    """The plans of template files and folders, compiled once, and those that are registered.

    Handlers beside a template file are added to `registry`; `retry` is the policy of steps whose template says nothing.
    """

    def __init__(self, registry: HandlerRegistry, plans: PlanStore, retry: RetryPolicy) -> None:
        self._registry, self._plans, self._retry = registry, plans, retry
        self._compiled: dict[tuple[str, str | None], tuple[Plan, ...]] = {}

    async def find(self, target: str | Path | Plan, template: str | None, environment: str | None) -> Plan:
        """The plan of a target as in `App.submit`. Raises `TemplateError`, `UsageError`."""
        if isinstance(target, Plan):
            return target
        if Path(target).exists():
            return choose_plan(self._of_path(str(target), environment), template, str(target))
        return (await self._plans.find(*registered_name(str(target)))).plan

    def _of_path(self, path: str, environment: str | None) -> tuple[Plan, ...]:
        plans = self._compiled.get((path, environment))
        if plans is None:
            plans = self._compiled[path, environment] = load_plans(path, environment, self._retry)
            add_handlers_beside(self._registry, Path(path))
        return plans
