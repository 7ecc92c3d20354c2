"""The hooks of a process: what plugins hear of, and may add (see `docs/writing-plugins.md`).

A plugin is a module or an object in the entry-point group `tasker.plugins` (on as soon as it is installed) or
`tasker.optional_plugins` (on where the configuration names it); its functions are marked with `hookimpl` and named like
those of `Hooks`. They are plain functions. Those that hear of something are called one by one in a thread that the
plugin has to itself, behind a bounded queue: no step waits for them. Those whose answer counts are called at once, by
whoever needs the answer. What one raises is logged once, counted, and changes nothing; a plugin that keeps failing, or
does not return, is switched off in that process for a while. Arguments are frozen. What a hook tells is what this
process did: the rows of the database stay the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pluggy

from tasker.contracts.hook_arguments import (
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
from tasker.contracts.template_rules import RuleFinding

if TYPE_CHECKING:
    import click
    from fastapi import APIRouter

    from tasker.contracts.metrics import Metric
    from tasker.contracts.plan import Plan
    from tasker.contracts.settings import Table

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
"""Marks a function of a plugin as one that Tasker calls."""
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
)
"""The hooks that are called at once by who needs their answer; all others hear, each plugin in a thread of its own."""


class Hooks:
    """What Tasker calls, by name. A function of a plugin may leave arguments out."""

    @hookspec
    def tasker_attempt_started(self, attempt: AttemptStarted) -> None:
        """A claimed step is about to run here. One `tasker_attempt_ended` follows, unless the process ends before."""

    @hookspec
    def tasker_attempt_ended(self, ended: AttemptEnded) -> None:
        """An attempt is over in this process; what came of it is stored next."""

    @hookspec
    def tasker_transitions(self, transitions: Sequence[StateTransition]) -> None:
        """What one write of this process has changed, after its commit. Not called where its answer was lost."""

    @hookspec
    def tasker_attempts_stored(self, attempts: Sequence[StoredAttempt]) -> None:
        """The attempts of one write of this worker, behind its answer. Those that are brought again come later."""

    @hookspec
    def tasker_tasks_submitted(self, submitted: TasksSubmitted) -> None:
        """This process created tasks. Not called where the answer of the database was lost."""

    @hookspec
    def tasker_write_committed(self, written: WriteCommitted) -> None:
        """A write of the engine was answered: what it came to, in numbers, and how long it took."""

    @hookspec
    def tasker_queue_polled(self, looked: QueuePolled) -> None:
        """This process has looked at a queue. Not called where `performance_monitoring_enabled` is false."""

    @hookspec
    def tasker_event_published(self, event: EventPublished) -> None:
        """A domain event of a step that this worker ran was told, behind its accepted result; or it failed."""

    @hookspec
    def tasker_request_answered(self, request: RequestAnswered) -> None:
        """This server answers a request."""

    @hookspec
    def tasker_batch_delivered(self, heard: BatchDelivered) -> None:
        """The plugin has heard all that happened so far: it may write together what it has gathered."""

    @hookspec
    def tasker_task_finished(self, task: TaskFinished) -> None:
        """A write of this process ended a task. Not called where the answer of the database was lost."""

    @hookspec
    def tasker_tasks_closed(self, tasks: Sequence[TaskClosed]) -> None:
        """Those tasks of one write that ended without a result that this process had run.

        They were cancelled, mended by hand or swept, or others ran the attempt. Told before `tasker_task_finished`,
        with what the database says of them, which is asked once for each such write. Not called where it does not
        answer.
        """

    @hookspec
    def tasker_breaker_changed(self, breaker: BreakerChanged) -> None:
        """A circuit breaker of this process has changed its state."""

    @hookspec
    def tasker_claims_throttled(self, claims: ClaimsThrottled) -> None:
        """This process stops claiming (or claims less), or goes on, for one reason; there may be several at a time."""

    @hookspec
    def tasker_sweep_repaired(self, repaired: SweepRepaired) -> None:
        """A sweep of this process repaired something."""

    @hookspec
    def tasker_process_started(self, process: ProcessInfo) -> None:
        """A worker or an orchestrator has begun to work in this process."""

    @hookspec
    def tasker_process_stopping(self, process: ProcessInfo) -> None:
        """It was told to stop: it claims nothing more, and what runs gets its grace."""

    @hookspec
    def tasker_process_stopped(self, process: ProcessInfo) -> None:
        """Nothing runs there any more, and nothing else is told: send what is left. The process waits five seconds."""

    @hookspec
    def tasker_background_jobs(self, database_url: str) -> Callable[[], Coroutine[Any, Any, None]]:  # type: ignore[empty-body]
        """A coroutine function that runs while a worker or orchestrator works: asked when that begins.

        It has a thread and an event loop of its own, and is cancelled at the end of the process, which waits for it for
        five seconds. What raises or returns is begun again after a pause. Each process of a fleet asks: who must be
        alone needs a lease.
        """

    @hookspec
    def tasker_connections(self) -> int:  # type: ignore[empty-body]  # the plugin's answer counts
        """Return how many connections to the database its background part opens at most.

        A process counts them at its start, when it says whether the connections of the fleet fit.
        """

    @hookspec
    def tasker_settings(self) -> type[Table]:  # type: ignore[empty-body]  # the plugin's answer counts
        """The model of the plugin's own table `[plugins.NAME]`, made of `tasker.contracts.settings`."""

    @hookspec
    def tasker_configured(self, settings: Any) -> Collection[str] | None:
        """Called at once when the plugin is loaded, with its table (None when it has none), before any other hook.

        It may answer the names of its hooks that these settings leave nothing to do for: they are not called, and what
        nobody hears is not made. What it raises keeps the plugin from being loaded.
        """

    @hookspec
    def tasker_metrics(self) -> Sequence[Metric]:  # type: ignore[empty-body]  # the plugin's answer counts
        """Metrics that the plugin keeps, of `tasker.contracts.metrics`: asked when a process begins to answer HTTP.

        `/metrics` of that process tells their values of each moment. A name that is taken is left out.
        """

    @hookspec
    def tasker_domain_events(self) -> Sequence[Any]:  # type: ignore[empty-body]  # the plugin's answer counts
        """Publishers and subscribers of domain events, classes or instances: asked once when a worker is assembled."""

    @hookspec
    def tasker_attempt_trace(self) -> AttemptTrace:  # type: ignore[empty-body]  # the plugin's answer counts
        """A function that says where in a trace an attempt is: asked once when a worker is assembled.

        It is called with `(task_uuid, step_uuid, token, traceparent)`, the last one of the task's submission or None,
        whenever a handler, its requests or its log lines ask, in any thread, and must take microseconds. What it
        returns is the `traceparent` that they carry on; None: that of the submission, as where it raises. One plugin
        is asked.
        """

    @hookspec
    def tasker_commands(self) -> Sequence[click.Command]:  # type: ignore[empty-body]  # the plugin's answer counts
        """Commands of `tasker` beside those that there are; those keep their names.

        While the plugin is off or refused it is asked without `tasker_configured`, when someone uses a command that
        does not exist. Of its answer only commands with the attribute `works_without_settings = True` are used.
        """

    @hookspec
    def tasker_routers(self) -> Sequence[APIRouter]:  # type: ignore[empty-body]  # the plugin's answer counts
        """Routers of `tasker.api.extending`: asked once, before a server listens.

        One without a prefix is offered below `/plugins/NAME`, another one at its prefix. The server authenticates
        callers and asks for the permission that each route names, as for routes of its own. A router whose prefix is
        taken, or with a route that names no permission, is left out.
        """

    @hookspec
    def tasker_template_rules(self, plan: Plan) -> Sequence[RuleFinding]:  # type: ignore[empty-body]  # the answer counts
        """What the plugin finds in a template: asked when one without errors of ours is validated, run or registered.

        What it raises is a warning in that template's list of problems.
        """
