"""Contexts for handler tests, made the way the worker makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tasker.errors import ResolutionError
from tasker.handlers.claims import Claim
from tasker.handlers.context import CancelFlag
from tasker.registry import BaseResolver, HandlerDefinition, ResolutionContext
from tasker.step_handler import StepHandler
from tasker.template.plan import HandlerRef, Plan, StepPlan
from tasker.template.step_types import StepType
from tasker.types import StepContext

TASK = "0190b0c0-0000-7000-8000-000000000001"
STEP = "0190b0c0-0000-7000-8000-000000000002"
CORRELATION = "0190b0c0-0000-7000-8000-000000000003"


def step_plan(name: str = "charge", callable: str = "charge", **handler: Any) -> StepPlan:
    return StepPlan(
        name=name,
        type=StepType.STANDARD,
        handler=HandlerRef(callable, **handler),
        ordinal=0,
        level=0,
        depends_on=(),
        static=True,
    )


def plan_of(*steps: StepPlan) -> Plan:
    return Plan("shop", "checkout", "1.0.0", steps)


def context(
    task_context: Mapping[str, Any] | None = None,
    *,
    results: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    attempt: int = 1,
    name: str = "charge",
    cancel_flag: CancelFlag | None = None,
) -> StepContext:
    step = step_plan(name, initialization=dict(config or {}))
    return StepContext.build(
        claim=Claim(
            step_uuid=STEP,
            task_uuid=TASK,
            name=name,
            template=1,
            ordinal=0,
            namespace="shop",
            token=7,
            attempt=attempt,
            max_attempts=3,
            correlation_id=CORRELATION,
            inputs=inputs,
            checkpoint=checkpoint,
        ),
        plan=plan_of(step),
        step=step,
        task_context=task_context or {},
        dependency_results=results or {},
        cancel_flag=cancel_flag,
    )


def worker_inputs(start: Any = 0, end: Any = 10, *, no_op: bool = False, **cursor: Any) -> dict[str, Any]:
    size = 0 if no_op else 10
    return {
        "cursor": {"batch_id": "001", "start_cursor": start, "end_cursor": end, "batch_size": size, **cursor},
        "batch_metadata": {"cursor_field": "id", "failure_strategy": "fail_fast", "checkpoint_interval": 5},
        "is_no_op": no_op,
    }


class ServiceDiscoveryResolver(BaseResolver):
    """In the published form, of which everything is a method."""

    def __init__(self, services: dict[str, type[StepHandler]]) -> None:
        self.services = services

    def resolver_name(self) -> str:
        return "service_discovery"

    def priority(self) -> int:  # type: ignore[override]
        return 50

    def can_resolve(self, definition: HandlerDefinition) -> bool:  # type: ignore[override]
        return definition.callable.startswith("service://")

    async def resolve(self, definition: HandlerDefinition, context: ResolutionContext) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        service = definition.callable.removeprefix("service://")
        if service not in self.services:
            raise ResolutionError(f"no service {service!r} in region {context.config.get('region')!r}")
        return self.services[service]()
