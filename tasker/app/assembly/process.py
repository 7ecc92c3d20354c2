"""How a process is put together: what workers and orchestrators have in common.

Every object is a cached property, made of the others when it is first asked for: nothing is joined afterwards, and
objects that needed each other would never be made.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from tasker.app.assembly.context import end_listener_of
from tasker.orchestration.consuming import MessageInbox
from tasker.orchestration.executor import StepExecutor
from tasker.orchestration.queue_actors import QueueActors
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.schedule import FollowUp
from tasker.orchestration.sweeping.sweep import Sweeper
from tasker.orchestration.turns import ExclusiveTurns
from tasker.orchestration.upkeep import Upkeep
from tasker.process.context import ProcessContext
from tasker.services.engine.calls import OnFinished
from tasker.services.engine.plans import PlanStore
from tasker.services.engine.process_registry import ProcessRegistry


class Assembly(ABC):
    """The objects of one process."""

    def __init__(self, context: ProcessContext) -> None:
        self.context = context

    @property
    @abstractmethod
    def executor(self) -> StepExecutor:
        """Who runs the steps of this process, if anybody."""

    @property
    @abstractmethod
    def inboxes(self) -> Mapping[str, MessageInbox]:
        """What is done with the messages of the orchestration queues that this process consumes, by their names."""

    @cached_property
    def follow_up(self) -> FollowUp:
        """What becomes of the answers to writes."""
        return FollowUp(self.context.schedule, on_finished=self.on_finished())

    def on_finished(self, then: OnFinished = lambda task, state: None) -> OnFinished:
        """What is called for each task that ended by a write of this process: the plugins that listen, and `then`."""
        return end_listener_of(self.context.plugins, then)

    @cached_property
    def registry(self) -> ProcessRegistry:
        """Where the process enters itself."""
        return ProcessRegistry(self.context.engine.connection)

    @cached_property
    def plans(self) -> PlanStore:
        """The templates that tasks are pinned to."""
        return PlanStore(self.context.engine.connection)

    @cached_property
    def actors(self) -> QueueActors:
        """The consumers of orchestration queues."""
        context = self.context
        return QueueActors(self.inboxes, context.engine, self.executor.caller, context.events, random)

    @cached_property
    def turns(self) -> ExclusiveTurns:
        """Whose turn it is to sweep; the answers say which queues are paused."""
        seconds = self.context.sweeps.interval_ms / 1000
        return ExclusiveTurns(
            self.context.engine, "sweep", self.context.clock, random, seconds, self.actors.pauses.told
        )

    @cached_property
    def sweeper(self) -> Sweeper:
        """What finds and repairs."""
        engine, settings = self.context.engine, self.context.sweeps
        return Sweeper(engine, ResultProcessor(engine, random), self.plans, random, settings, self.follow_up.advanced)

    @cached_property
    def upkeep(self) -> Upkeep:
        """What promotes, sweeps, and wakes sleeping workers."""
        return Upkeep(
            self.context.engine,
            self.sweeper,
            self.turns,
            self.executor,
            self.context.schedule,
            self.context.clock,
            random,
            breaker=self.context.breakers.task_readiness,
            on_advanced=self.follow_up.advanced,
            on_repaired=self.context.plugins.listener("tasker_sweep_repaired"),
        )
