"""What was found out about handlers, kept until one comes or goes."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from tasker.contracts.plan import HandlerRef, StepPlan, TemplateId
from tasker.registry.invocation import ResolvedHandler

REMEMBERED_STEPS = 10_000


class HandlerCache:
    """Handlers as the worker calls them. Each change of a registry makes a new one of these: what another thread finds
    out meanwhile goes into the old one, and is forgotten with it."""

    def __init__(self) -> None:
        self._resolved: dict[Hashable, ResolvedHandler] = {}
        self._of_steps: dict[tuple[TemplateId | None, str], tuple[HandlerRef, ResolvedHandler]] = {}
        self.checked: set[str] = set()
        """Hashes of plans whose handlers are all there and fit."""

    def of_step(
        self, step: StepPlan, template: TemplateId | None, find: Callable[[], ResolvedHandler]
    ) -> ResolvedHandler:
        """The handler of a step; found when it is not known, or when the plan names another one."""
        reference, found = self._of_steps.get((template, step.name), (None, None))
        if found is None or reference is not step.handler:
            found = find()
            if len(self._of_steps) >= REMEMBERED_STEPS:
                self._of_steps.clear()
            self._of_steps[template, step.name] = (step.handler, found)
        return found

    def resolved(self, key: Hashable, find: Callable[[], ResolvedHandler]) -> ResolvedHandler:
        """The handler of this key; of two threads that find it at the same time both have the first one's."""
        found = self._resolved.get(key)
        return self._resolved.setdefault(key, find()) if found is None else found
