"""Cache of resolved handlers, replaced when a handler is added or removed."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from tasker.contracts.plan import HandlerRef, StepPlan, TemplateId
from tasker.registry.invocation import ResolvedHandler

REMEMBERED_STEPS = 10_000


class HandlerCache:
    """Resolved handlers as the worker calls them.

    Each change of a registry creates a new cache: results that another thread computes meanwhile go into the old one
    and are discarded with it.
    """

    def __init__(self) -> None:
        self._resolved: dict[Hashable, ResolvedHandler] = {}
        self._of_steps: dict[tuple[TemplateId | None, str], tuple[HandlerRef, ResolvedHandler]] = {}
        self.checked: set[str] = set()
        """Hashes of plans whose handlers all exist and fit."""

    def of_step(
        self, step: StepPlan, template: TemplateId | None, find: Callable[[], ResolvedHandler]
    ) -> ResolvedHandler:
        """Return the handler of a step; resolve it if it is unknown or if the plan names another one."""
        reference, found = self._of_steps.get((template, step.name), (None, None))
        if found is None or reference is not step.handler:
            found = find()
            if len(self._of_steps) >= REMEMBERED_STEPS:
                self._of_steps.clear()
            self._of_steps[template, step.name] = (step.handler, found)
        return found

    def resolved(self, key: Hashable, find: Callable[[], ResolvedHandler]) -> ResolvedHandler:
        """Return the handler of this key; two threads that resolve it at the same time both get the first result."""
        found = self._resolved.get(key)
        return self._resolved.setdefault(key, find()) if found is None else found
