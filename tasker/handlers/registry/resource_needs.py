"""Resources that handlers need, and those that this process has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasker.errors import ResourceMissing
from tasker.handlers.registry.invocation import resources_used_by
from tasker.template.builtin import BUILTIN, BuiltinStep, resources_of
from tasker.template.plan import StepPlan


class ResourceNeeds:
    """Check of handlers and steps against the resources of this process; `names` None: nothing is checked."""

    def __init__(self, names: Iterable[str] | None = None, steps: Mapping[str, BuiltinStep] = BUILTIN) -> None:
        self.names, self.steps = None if names is None else frozenset(names), steps
        self.refused: set[str] = set()
        """What steps named that is missing here: `handler resource`."""

    def missing(self, target: Any) -> list[str]:
        """Return the resources that a handler declares and that are missing here, sorted."""
        return [] if self.names is None else sorted(resources_used_by(target) - self.names)

    def require(self, callable_name: str, step: str, target: Any) -> None:
        """Raise `ResourceMissing` for a handler that declares others."""
        if missing := self.missing(target):
            raise self._error(callable_name, step, missing)

    def require_for_step(self, step: StepPlan) -> None:
        """Raise `ResourceMissing` for a built-in step whose inputs name another one."""
        name, names = step.handler.callable, self.names
        if names is None:
            return
        missing = [resource for resource in resources_of(self.steps.get(name), step.inputs) if resource not in names]
        if missing:
            self.refused.update(f"{name} {resource}" for resource in missing)
            raise self._error(name, step.name, missing)

    def lacking(self, targets: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return those handlers, by name, that are not served here, each with the resources that it lacks."""
        return {name: missing for name, target in targets.items() if (missing := self.missing(target))}

    def _error(self, callable_name: str, step: str, missing: Sequence[str]) -> ResourceMissing:
        where = f" (step {step!r})" if step else ""
        names = " and ".join(f"`{name}`" for name in missing)
        tables = " and ".join(f"[resources.{name}]" for name in missing)
        return ResourceMissing(
            f"the handler {callable_name!r}{where} uses the resource {names}, which this process does not have",
            hint=f"write {tables} in its configuration; it has: {', '.join(sorted(self.names or ())) or 'none'}",
        )
