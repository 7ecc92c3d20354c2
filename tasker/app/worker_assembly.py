"""Assembly of a worker with the engine in its process."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from tasker.app.assembly import process_context
from tasker.app.process_assembly import Assembly
from tasker.clock import new_task_uuid, new_uuid
from tasker.engine.calls import Engine
from tasker.engine.exchange import ResultSink
from tasker.engine.polling import QueuePoller
from tasker.execution.attempt.capacity import CapacityWaits
from tasker.execution.attempt.listeners import AttemptListener
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.claiming import Claimer
from tasker.execution.completer import Completer, CompletionBuffer
from tasker.execution.custom_publishers import CustomPublishers
from tasker.execution.event_bus import AcceptedEventBus, OnPublished
from tasker.execution.event_making import EventFactory
from tasker.execution.event_publishers import register_plugins
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.report_writer import ReportWriter
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.step_execution import StepExecution
from tasker.execution.worker import Worker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.logging.step_log import LEVELS
from tasker.messaging.service import MessagingService
from tasker.orchestration.parked_results import ParkedResultConsumer, ParkingProcessor
from tasker.orchestration.pending_work import FollowUp
from tasker.orchestration.queue_actors import MessageInbox
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.contributions import handlers_of, trace_of
from tasker.plugins.host import PluginHost
from tasker.process.context import ProcessContext
from tasker.process.registration import WorkerRegistration
from tasker.process.releases import ClaimReleaser
from tasker.process.runtime import Runtime
from tasker.resilience.breakers import Breakers
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.from_handlers import StepSubmissions
from tasker.services.submission.limits import SubmissionLimits
from tasker.template.error_rules import parse_overrides

if TYPE_CHECKING:
    from tasker.execution.attempt.transactions import HandlerTransactions
    from tasker.resources.registry import ResourceRegistry
    from tasker.resources.tables import ResourceTables
    from tasker.services.submission.submit import Submitter


def worker_process(
    url: str,
    messaging: MessagingService,
    registry: HandlerRegistry,
    namespaces: Sequence[str],
    *,
    settings: WorkerSettings | None = None,
    sweeps: SweepSettings | None = None,
    breakers: Breakers | None = None,
    consume: bool = True,
    runner: Callable[..., AttemptRunner] = AttemptRunner,
    on_finished: Callable[[str, str], None] = lambda task, state: None,
    on_elsewhere: Callable[[Sequence[str]], None] = lambda tasks: None,
    waiter: str | None = None,
    plugins: PluginHost | None = None,
) -> Runtime:
    """Return a worker that is not started yet.

    `on_finished(task_uuid, state)` is called for every task that this process ends, `on_elsewhere` is as in `Runtime`.
    With the result path `queued`, `consume` decides whether this process also settles parked results. `runner` creates
    the attempt runner. `waiter` is the id of the program in this process that waits for tasks: it is also notified of
    tasks that other processes end. `plugins` is as in `process_context`.
    """
    context = process_context(url, messaging, settings, sweeps, breakers, waiter=waiter, plugins=plugins)
    made = WorkerAssembly(context, registry, namespaces, runner, on_finished, consume=consume)
    return Runtime(context, made.execution, made.actors, made.upkeep, made.membership, on_elsewhere, waiter)


def _registry_of(tables: ResourceTables | None) -> ResourceRegistry | None:
    if tables is None:
        return None
    from tasker.resources.registry import ResourceRegistry  # needed for workers with resources only

    return ResourceRegistry(tables)


class WorkerAssembly(Assembly):
    """Objects of a worker's process. Parameters as in `worker_process`."""

    def __init__(
        self,
        context: ProcessContext,
        registry: HandlerRegistry,
        namespaces: Sequence[str],
        runner: Callable[..., AttemptRunner],
        on_finished: Callable[[str, str], None],
        *,
        consume: bool,
    ) -> None:
        super().__init__(context)
        self._handlers, self._make_runner = registry, runner
        self._namespaces, self._on_finished = list(namespaces), on_finished
        self._parks = context.settings.execution.result_path == "queued"
        self._consumes = self._parks and consume

    @cached_property
    def execution(self) -> StepExecution:
        """Execution of steps with all its parts."""
        writer = ReportWriter(self.reports, self.context.engine)
        return StepExecution(
            self.executor, self.claimer, self.buffer, self.collector, self.runner, self.context.clock, self.bus, writer
        )

    @cached_property
    def membership(self) -> WorkerRegistration:
        """Worker's entry in the registry, with its lease."""
        context = self.context
        return WorkerRegistration(
            self.executor,
            self.registry,
            self._handlers,
            self._namespaces,
            context.messaging.provider_name(),
            context.url,
            context.clock,
            context.limits,
        )

    @cached_property
    def executor(self) -> Worker:
        return Worker(
            new_uuid(),
            self.slots,
            self.buffer,
            engine=self.claim_engine,
            plans=self.plans,
            runner=self.runner,
            settings=self.context.settings,
            events=EventFactory(self.custom_publishers, new_uuid, self.on_published),
            reports=self.reports,
            teller=self.teller,
            trace_of=trace_of(self.context.plugins),
            starter=StepSubmissions(self._submitter, self.plans),
        )

    def _submitter(self) -> Submitter:
        """Return the creator of the tasks that handlers start, under the limits of other submissions."""
        from tasker.services.submission.submit import Submitter  # needed for handlers that start tasks only

        context, settings = self.context, self.context.settings
        admission = SubmissionAdmission(context.engine, context.clock, settings.depth_limits)
        return Submitter(
            context.engine,
            self.plans,
            new_task_uuid,
            window=settings.limits.enqueue_window,
            context_limit_bytes=settings.limits.context_limit_bytes,
            admission=admission,
            limits=SubmissionLimits(context.engine, settings.tenants),
            max_depth=settings.limits.max_task_depth,
        )

    @cached_property
    def custom_publishers(self) -> CustomPublishers:
        """Caller of custom event publishers."""
        return CustomPublishers(self.context.settings.hand_off.callback_timeout_ms / 1000)

    @cached_property
    def bus(self) -> AcceptedEventBus:
        """Bus that delivers accepted events in this process."""
        register_plugins(self.context.plugins)
        settings = self.context.settings
        return AcceptedEventBus(
            self.custom_publishers,
            settings.domain_events.shutdown_drain_timeout_ms / 1000,
            capacity=settings.domain_events.command_buffer_size,
            log_dropped=settings.domain_events.log_dropped_events,
            on_published=self.on_published,
            limits=settings.subscribers,
            remembered=settings.seen_events.deduplication_cache_size,
        )

    @cached_property
    def on_published(self) -> OnPublished | None:
        """Callback that notifies plugins of domain events; None if no plugin listens."""
        return self.context.plugins.listener("tasker_event_published")

    @cached_property
    def reports(self) -> ReportBuffer:
        """Buffer of handlers' logs and progress until they are stored."""
        execution = self.context.settings.execution
        return ReportBuffer(LEVELS[execution.keep_logs], execution.kept_log_lines)

    @cached_property
    def teller(self) -> AttemptListener | None:
        """Listener that notifies plugins of attempts; None if no plugin listens."""
        hooks = ("tasker_attempt_started", "tasker_attempt_ended")
        started, ended = map(self.context.plugins.listener, hooks)
        return AttemptListener(started, ended, self.context.clock.now) if started or ended else None

    @cached_property
    def inboxes(self) -> Mapping[str, MessageInbox]:
        """Consumer of parked results, if this process settles them."""
        if not self._consumes:
            return {}
        engine = self.context.engine
        parked = ParkedResultConsumer(engine, ResultProcessor(engine, random), self.plans, self.follow_up.advanced)
        return {self.context.messaging.names.step_results: parked}

    @cached_property
    def follow_up(self) -> FollowUp:
        """Handling of answers that also wakes the claimer for steps that became ready."""
        return FollowUp(self.context.schedule, wake=self.poller.wake, on_finished=self.on_finished(self._on_finished))

    @cached_property
    def claim_engine(self) -> Engine:
        return self.context.engines.make("claim")

    @cached_property
    def result_engine(self) -> Engine:
        return self.context.engines.make("result")

    @cached_property
    def processor(self) -> ResultProcessor:
        """Processor that advances tasks by the results of their steps."""
        return ResultProcessor(self.result_engine, random)

    @cached_property
    def poller(self) -> QueuePoller:
        """Schedule of the worker's polls for steps."""
        return QueuePoller(self.context.events, random)

    @cached_property
    def slots(self) -> Slots:
        """Slots that limit the number of running steps."""
        return Slots(
            self.context.settings.dispatch.max_concurrent_handlers,
            self.context.plugins.listener("tasker_claims_throttled"),
        )

    @cached_property
    def buffer(self) -> CompletionBuffer:
        """Buffer of completed attempts that are not stored yet."""
        settings = self.context.settings
        return CompletionBuffer(self.slots, settings.dispatch, settings.overflow)

    @cached_property
    def runner(self) -> AttemptRunner:
        """Runner of handlers."""
        settings = self.context.settings
        resources = _registry_of(settings.resources)
        self._handlers.provide_steps(handlers_of(self.context.plugins))
        self._handlers.provide_resources(() if resources is None else resources.names)
        runner = self._make_runner(
            registry=self._handlers,
            clock=self.context.clock,
            breakers=self.context.breakers,
            default_timeout=settings.dispatch.handler_timeout_ms / 1000,
            threads=settings.execution.threads,
            waits=CapacityWaits(
                settings.lease.grace_ms / 1000, settings.hand_off.starvation_warning_threshold_ms / 1000
            ),
            error_rules=parse_overrides(*settings.execution.error_rules),
            slots=self.slots,
        )
        if resources is not None:
            runner.resources = resources
        runner.make_transactions = cache(self._transactions)
        return runner

    def _transactions(self) -> HandlerTransactions:
        from tasker.execution.attempt.transactions import HandlerTransactions  # needed for transactional steps only
        from tasker.orchestration.step_transactions import EngineTransactions

        writes = EngineTransactions(self.result_engine)
        return HandlerTransactions(self.context.url, writes, self.executor.caller, self.executor.with_events)

    @cached_property
    def releases(self) -> ClaimReleaser:
        """Release of claims, and enqueuing of pending steps for which there is room."""
        return ClaimReleaser(
            self.processor, self.context.engine, self.executor.caller, self.context.schedule, self.follow_up
        )

    @cached_property
    def claimer(self) -> Claimer:
        """Claimer of steps from the queue."""
        return Claimer(
            self.claim_engine,
            self.executor,
            self._namespaces,
            self.poller,
            random,
            self.releases.release_backlog,
            on_lost=self.context.schedule.suspect,
            on_delayed=self.context.schedule.wake_later,
        )

    @cached_property
    def sink(self) -> ResultSink:
        """Destination of results: their tasks, or an orchestrator."""
        return ParkingProcessor(self.result_engine, random) if self._parks else self.processor

    @cached_property
    def collector(self) -> Completer:
        """Completer of attempts, subscribed to its breaker."""
        breaker = self.context.breakers.completion
        collector = Completer(
            self.buffer,
            self.executor,
            self.sink,
            self.releases.give_back,
            breaker,
            on_advanced=self.follow_up.advanced,
            on_lost=self.context.schedule.suspect,
            bus=self.bus,
            on_stored=self.context.plugins.listener("tasker_attempts_stored"),
        )
        breaker.guard.listeners.append(collector.apply_breaker)
        breaker.guard.notes.append(self.buffer.describe)
        return collector
