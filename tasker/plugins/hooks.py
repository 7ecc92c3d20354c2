"""Hooks of a process: the calls that a plugin can receive and the extensions that it can provide.

See `docs/writing-plugins.md`. A plugin is a module or an object in the entry-point group `tasker.plugins` (active as
soon as it is installed) or `tasker.optional_plugins` (active if the configuration names it). Its functions are marked
with `hookimpl` and named like the methods of `Hooks`. They are plain functions.

Notification hooks are called one by one in a thread of the plugin's own, behind a bounded queue, so that no step waits
for them. Hooks that return something are called directly by the component that needs the value. An exception is logged
once, counted, and changes nothing else; a plugin that keeps failing, or does not return, is disabled in that process
for a while. Arguments are frozen. A hook reports what this process did; the database remains the source of truth.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pluggy

from tasker.plugins.hook_arguments import (
    AttemptEnded,
    AttemptStarted,
    BatchDelivered,
    BreakerChanged,
    ClaimsThrottled,
    EventPublished,
    ProcessInfo,
    QueuePolled,
    RequestAnswered,
    StateTransition,
    StoredAttempt,
    SweepRepaired,
    TaskClosed,
    TaskFinished,
    TasksSubmitted,
    TaskSubmitted,
    WriteCommitted,
)
from tasker.template.plugin_rules import RuleFinding

if TYPE_CHECKING:
    import click
    from fastapi import APIRouter

    from tasker.handlers.builtin import BuiltinHandler
    from tasker.metrics import Metric
    from tasker.settings.table import Table
    from tasker.template.plan import Plan

__all__ = [
    "ASKED",
    "AttemptEnded",
    "AttemptStarted",
    "AttemptTrace",
    "BatchDelivered",
    "BreakerChanged",
    "ClaimsThrottled",
    "EventPublished",
    "Hooks",
    "ProcessInfo",
    "QueuePolled",
    "RequestAnswered",
    "RuleFinding",
    "StateTransition",
    "StoredAttempt",
    "SweepRepaired",
    "TaskClosed",
    "TaskFinished",
    "TaskSubmitted",
    "TasksSubmitted",
    "WriteCommitted",
    "hookimpl",
]

PROJECT = "tasker"
AttemptTrace: TypeAlias = Callable[[str, str, int, str | None], str | None]
"""(task, step, token, traceparent of the submission) -> traceparent of the attempt."""
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as a hook implementation."""
ASKED = (
    "tasker_settings",
    "tasker_configured",
    "tasker_metrics",
    "tasker_domain_events",
    "tasker_attempt_trace",
    "tasker_commands",
    "tasker_background_jobs",
    "tasker_connections",
    "tasker_routers",
    "tasker_template_rules",
    "tasker_handlers",
)
"""Hooks that are called directly because the caller needs the return value.

All others are notifications, which each plugin gets in a thread of its own.
"""


class Hooks:
    """Hooks that Tasker calls, by name. A plugin's function may omit arguments."""

    @hookspec
    def tasker_attempt_started(self, attempt: AttemptStarted) -> None:
        """Observe that a claimed step is about to run here.

        One `tasker_attempt_ended` follows unless the process ends first.
        """

    @hookspec
    def tasker_attempt_ended(self, ended: AttemptEnded) -> None:
        """Observe that an attempt ended in this process; its outcome is stored next."""

    @hookspec
    def tasker_transitions(self, transitions: Sequence[StateTransition]) -> None:
        """Observe the state transitions of one write of this process, after its commit.

        Not called if the database's answer was lost.
        """

    @hookspec
    def tasker_attempts_stored(self, attempts: Sequence[StoredAttempt]) -> None:
        """Observe the attempts stored by one write of this worker, after the database's answer.

        Attempts whose write is retried are reported later.
        """

    @hookspec
    def tasker_tasks_submitted(self, submitted: TasksSubmitted) -> None:
        """Observe that this process created tasks. Not called if the database's answer was lost."""

    @hookspec
    def tasker_write_committed(self, written: WriteCommitted) -> None:
        """Observe that the database answered a write of the engine: its results as counts, and its duration."""

    @hookspec
    def tasker_queue_polled(self, poll: QueuePolled) -> None:
        """Observe that this process polled a queue. Not called if `performance_monitoring_enabled` is false."""

    @hookspec
    def tasker_event_published(self, event: EventPublished) -> None:
        """Observe that publishing a domain event of a step of this worker succeeded or failed.

        An event is published after the step's result was accepted.
        """

    @hookspec
    def tasker_request_answered(self, request: RequestAnswered) -> None:
        """Observe that this server answered a request."""

    @hookspec
    def tasker_batch_delivered(self, batch: BatchDelivered) -> None:
        """Observe that every notification so far was delivered.

        The plugin may now write the data that it collected as one batch.
        """

    @hookspec
    def tasker_task_finished(self, task: TaskFinished) -> None:
        """Observe that a write of this process ended a task. Not called if the database's answer was lost."""

    @hookspec
    def tasker_tasks_closed(self, tasks: Sequence[TaskClosed]) -> None:
        """Observe tasks of one write that ended without a result from this process.

        They were cancelled, repaired by an operator or swept, or another process ran the attempt. Called before
        `tasker_task_finished`, with data that is read from the database once per write. Not called if the database does
        not answer.
        """

    @hookspec
    def tasker_breaker_changed(self, breaker: BreakerChanged) -> None:
        """Observe that a circuit breaker of this process changed its state."""

    @hookspec
    def tasker_claims_throttled(self, claims: ClaimsThrottled) -> None:
        """Observe that this process stops claiming, claims less, or resumes, for one reason.

        Several reasons may apply at a time.
        """

    @hookspec
    def tasker_sweep_repaired(self, repaired: SweepRepaired) -> None:
        """Observe that a sweep of this process repaired something."""

    @hookspec
    def tasker_process_started(self, process: ProcessInfo) -> None:
        """Observe that a worker or an orchestrator started in this process."""

    @hookspec
    def tasker_process_stopping(self, process: ProcessInfo) -> None:
        """Observe that the worker or orchestrator is stopping.

        It claims nothing more, and running steps get their grace period.
        """

    @hookspec
    def tasker_process_stopped(self, process: ProcessInfo) -> None:
        """Flush remaining data: nothing runs any more and no notification follows. The process waits five seconds."""

    @hookspec
    def tasker_background_jobs(self, database_url: str) -> Callable[[], Coroutine[Any, Any, None]]:  # type: ignore[empty-body]
        """Return a coroutine function that runs as long as a worker or orchestrator does; called when it starts.

        The coroutine has a thread and an event loop of its own and is cancelled at the end of the process, which waits
        five seconds for it. If it raises or returns, it is restarted after a pause. Every process of a fleet runs it: a
        job that must run only once needs a lease.
        """

    @hookspec
    def tasker_connections(self) -> int:  # type: ignore[empty-body]
        """Return the maximum number of database connections that the plugin's background job opens.

        At its start a process includes them in its check that the connections of the fleet fit.
        """

    @hookspec
    def tasker_settings(self) -> type[Table]:  # type: ignore[empty-body]
        """Return the model of the plugin's own table `[plugins.NAME]`, built with `tasker.settings.table`."""

    @hookspec
    def tasker_configured(self, settings: Any) -> Collection[str] | None:
        """Receive the plugin's settings (None if it has no table); called once at load, before any other hook.

        It may return the names of the plugin's hooks that have nothing to do under these settings: they are not called,
        and data that no plugin needs is not produced. If it raises, the plugin is not loaded.
        """

    @hookspec
    def tasker_metrics(self) -> Sequence[Metric]:  # type: ignore[empty-body]
        """Return the plugin's metrics, built with `tasker.metrics`.

        Called when a process starts to serve HTTP; `/metrics` of that process exports their current values. A metric
        whose name is taken is ignored.
        """

    @hookspec
    def tasker_domain_events(self) -> Sequence[Any]:  # type: ignore[empty-body]
        """Return publishers and subscribers of domain events, classes or instances.

        Called once when a worker is assembled.
        """

    @hookspec
    def tasker_attempt_trace(self) -> AttemptTrace:  # type: ignore[empty-body]
        """Return a function that computes the trace context of an attempt; called once when a worker is assembled.

        The function is called with `(task_uuid, step_uuid, token, traceparent)`, the last being that of the task's
        submission or None, whenever a handler, its requests or its log lines need the trace, in any thread; it must
        take microseconds. It returns the `traceparent` to propagate; on None, or if it raises, that of the submission
        is used. Only one plugin can provide it.
        """

    @hookspec
    def tasker_commands(self) -> Sequence[click.Command]:  # type: ignore[empty-body]
        """Return additional commands of `tasker`; existing commands keep their names.

        While the plugin is disabled or refused, the hook is called without `tasker_configured` when a user runs a
        command that does not exist. Then only commands with the attribute `works_without_settings = True` are used.
        """

    @hookspec
    def tasker_routers(self) -> Sequence[APIRouter]:  # type: ignore[empty-body]
        """Return routers of `tasker.server.plugin_routes`; called once before a server listens.

        A router without a prefix is served below `/plugins/NAME`, any other at its prefix. The server authenticates
        callers and checks the permission that each route names, as for its own routes. A router is ignored if its
        prefix is taken or one of its routes names no permission.
        """

    @hookspec
    def tasker_handlers(self) -> Sequence[type[BuiltinHandler]]:  # type: ignore[empty-body]
        """Return handlers of built-in steps, subclasses of `tasker.step_handler.BuiltinHandler`.

        Called when a worker is assembled, and before templates are compiled, which are checked against the schemas of
        the classes. A handler is ignored if its name is taken or begins with `tasker.`.
        """

    @hookspec
    def tasker_template_rules(self, plan: Plan) -> Sequence[RuleFinding]:  # type: ignore[empty-body]
        """Return the plugin's findings about a template.

        Called when a template without errors of Tasker's own rules is validated, run or registered. An exception
        becomes a warning in that template's list of problems.
        """
