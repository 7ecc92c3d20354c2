"""A runner with attempts to run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import Attempt, AttemptCancelFlag, AttemptEnd, Checkpoint
from tasker.execution.attempt.runner import AttemptRunner
from tasker.handlers.claims import Claim, Failure
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.resilience.breakers import Breakers
from tasker.template.plan import HandlerRef, Plan, StepPlan
from tasker.template.step_types import StepType

PATIENCE = 30.0
"""Seconds after which a test that hangs is given up."""


class FakeClock:
    """Shows the time that a test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Saver:
    """Stores checkpoints as the engine would; `refuse` says that the claim is gone, `instead` is asked
    in its place. `begun` is asked when the handler of a step that waited is called."""

    saved: list[Checkpoint] = field(default_factory=list)
    refuse: bool = False
    begun: Callable[[], Awaitable[bool]] | None = None
    instead: Callable[[Checkpoint], Awaitable[Mapping[str, Any] | None]] | None = None

    async def begin(self, attempt: Attempt) -> bool:
        return self.begun is None or await self.begun()

    async def lock(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"token": 1}

    async def children(self, attempt: Attempt, page: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    async def memo(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        if self.instead is not None:
            return await self.instead(position)
        if self.refuse:
            return None
        self.saved.append(position)
        return {
            "cursor": position.cursor,
            "items_processed": position.items_processed,
            "accumulated_results": position.accumulated_results,
            "history": [{"cursor": earlier.cursor} for earlier in self.saved],
            "events": [event.to_json() for event in position.events],
        }


@dataclass
class Bench:
    """A runner with its registry, its clock, and the claims whose threads it has left behind."""

    runner: AttemptRunner
    registry: HandlerRegistry
    clock: FakeClock
    leaked: list[Claim]
    breakers: Breakers

    def attempt(
        self,
        handler: Any = None,
        *,
        save: Saver | None = None,
        begin: Callable[[], Awaitable[bool]] | None = None,
        callable: str = "under_test",
        inputs: Mapping[str, Any] | None = None,
        apart: bool = False,
        ends_at: float | None = None,
        **step: Any,
    ) -> Attempt:
        """An attempt of a step with that handler; keywords are fields of the step's plan."""
        if handler is not None:
            self.registry.register(callable, handler)
        planned = _step(callable, **step)
        plan = Plan("shop", "orders", "1.0.0", (planned,))
        claim = Claim(
            step_uuid="01900000-0000-7000-8000-000000000001",
            task_uuid="01900000-0000-7000-8000-000000000002",
            name="charge",
            template=1,
            ordinal=0,
            namespace="shop",
            token=7,
            attempt=1,
            max_attempts=3,
            correlation_id="01900000-0000-7000-8000-000000000003",
            inputs=inputs,
            isolated=apart,
            ends_at=ends_at,
        )
        flag, above = AttemptCancelFlag(), {"above": {"n": 1}}
        return Attempt(claim, plan, planned, {"amount": 5}, above, flag, save or Saver(begun=begin))

    async def run(self, handler: Any, **options: Any) -> AttemptEnd:
        """Run an attempt of a step with that handler to its end."""
        return await self.end(self.attempt(handler, **options))

    async def failure(self, handler: Any, **options: Any) -> Failure:
        """Run an attempt that must end in a failure."""
        return failure_of(await self.run(handler, **options))

    async def end(self, attempt: Attempt) -> AttemptEnd:
        """Run that attempt to its end."""
        async with asyncio.timeout(PATIENCE):
            return await self.runner.run(attempt)


def failure_of(end: AttemptEnd) -> Failure:
    """The failure of a finished attempt, which must have one."""
    assert isinstance(end, Result), end
    assert end.failure is not None, end
    assert end.success is None
    return end.failure


def _step(callable: str, **fields: Any) -> StepPlan:
    handler = HandlerRef(callable, method=fields.pop("method", "call"))
    base: dict[str, Any] = {
        "ordinal": 0,
        "level": 0,
        "depends_on": (),
        "static": True,
    }
    name = fields.pop("name", "charge")
    return StepPlan(name=name, type=StepType.STANDARD, handler=handler, **base, **fields)


def make_bench(**options: Any) -> Bench:
    """A bench whose runner has one thread and one process, or what the options say."""
    clock, registry = FakeClock(), HandlerRegistry()
    breakers = Breakers(clock)
    leaked: list[Claim] = []
    parameters: dict[str, Any] = {"threads": 1, "processes": 1, "stop_grace": 0.05} | options
    runner = AttemptRunner(
        registry=registry, clock=clock, breakers=breakers, on_leaked_thread=leaked.append, **parameters
    )
    return Bench(runner, registry, clock, leaked, breakers)
