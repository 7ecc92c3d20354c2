"""Common assembly of workers and orchestrators.

Every object is a cached property, created from the others at its first use. Nothing is connected afterwards, so objects
with circular dependencies cannot be created.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from tasker.app.assembly import end_listener_of
from tasker.clock import new_task_uuid
from tasker.engine.calls import OnFinished
from tasker.engine.plans import PlanStore
from tasker.engine.process_registry import ProcessRegistry
from tasker.orchestration.pending_work import ExclusiveTurns, FollowUp
from tasker.orchestration.queue_actors import MessageInbox, QueueActors
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper
from tasker.orchestration.upkeep import StepExecutor, Upkeep, UpkeepMakers
from tasker.process.context import ProcessContext

if TYPE_CHECKING:
    from tasker.services.child_tasks import ChildTasks
    from tasker.services.event_matching import EventMatcher
    from tasker.services.schedule_firing import ScheduleFiring
    from tasker.services.submission.submit import DraftFactory


class Assembly(ABC):
    """Objects of one process."""

    def __init__(self, context: ProcessContext) -> None:
        self.context = context

    @property
    @abstractmethod
    def executor(self) -> StepExecutor:
        """Executor of steps, or its stand-in in a process that runs no steps."""

    @property
    @abstractmethod
    def inboxes(self) -> Mapping[str, MessageInbox]:
        """Consumers of the orchestration queues that this process reads, by queue name."""

    @cached_property
    def follow_up(self) -> FollowUp:
        """Handling of the answers to writes."""
        return FollowUp(self.context.schedule, on_finished=self.on_finished())

    def on_finished(self, then: OnFinished = lambda task, state: None) -> OnFinished:
        """Return the callback for each task ended by a write of this process: notifies plugins, then calls `then`."""
        return end_listener_of(self.context.plugins, then)

    @cached_property
    def registry(self) -> ProcessRegistry:
        """Registry in which the process registers itself."""
        return ProcessRegistry(self.context.engine.connection)

    @cached_property
    def plans(self) -> PlanStore:
        """Store of the plans that tasks are pinned to."""
        return PlanStore(self.context.engine.connection)

    @cached_property
    def actors(self) -> QueueActors:
        """Consumers of orchestration queues."""
        context = self.context
        return QueueActors(self.inboxes, context.engine, self.executor.caller, context.events, random)

    @cached_property
    def turns(self) -> ExclusiveTurns:
        """Coordination of sweeps between processes; its answers also report paused queues."""
        seconds = float(self.context.sweeps.timing.fallback_polling_interval_seconds)
        return ExclusiveTurns(
            self.context.engine, "sweep", self.context.clock, random, seconds, self.actors.pauses.update
        )

    @cached_property
    def sweeper(self) -> Sweeper:
        """Sweeper that finds and repairs lost work."""
        engine, settings = self.context.engine, self.context.sweeps
        return Sweeper(engine, ResultProcessor(engine, random), self.plans, random, settings, self.follow_up.advanced)

    @cached_property
    def upkeep(self) -> Upkeep:
        """Periodic promotion, sweeping and waking of sleeping workers."""
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
            makers=UpkeepMakers(self._firing, self._matching, self._child_tasks),
        )

    def _child_tasks(self) -> ChildTasks:
        from tasker.services.child_tasks import ChildTasks  # lazy import, needed only where steps start child tasks

        return ChildTasks(self.context.engine, self.plans, self._drafts(), self.follow_up.advanced)

    def _matching(self) -> EventMatcher:
        from tasker.services.event_matching import EventMatcher  # lazy import, needed only where steps wait for events

        return EventMatcher(self.context.engine, self.plans, self.follow_up.advanced)

    def _firing(self) -> ScheduleFiring:
        from tasker.services.schedule_firing import ScheduleFiring  # lazy import, needed only where schedules fire

        return ScheduleFiring(self.context.engine, self.plans, self._drafts())

    def _drafts(self) -> DraftFactory:
        from tasker.services.submission.submit import DraftFactory

        limits = self.context.settings.limits
        return DraftFactory(new_task_uuid, window=limits.enqueue_window, max_depth=limits.max_task_depth)
