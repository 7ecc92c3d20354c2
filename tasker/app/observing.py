"""What a worker shows of itself, from the parts that it is made of."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.api.process.observed import Load, Observed
from tasker.contracts.plan import Plan
from tasker.handler import HandlerRegistry
from tasker.process.runtime import Runtime
from tasker.services.authoring.handlers import missing_callables


def observed_worker(runtime: Runtime, registry: HandlerRegistry, plans: Sequence[Plan]) -> Observed:
    """A worker with these handlers, which found these templates."""
    worker = runtime.worker

    def load() -> Load:
        return Load(runtime.settings.concurrency, worker.busy, worker.given_back, runtime.execution.held_by())

    return Observed(
        "worker",
        runtime,
        lambda: worker.identity,
        lambda: list(runtime.namespaces),
        registry.served_handlers,
        plans,
        lambda plan: [each.callable for each in missing_callables(registry, plan)],
        load,
    )
