"""`App` for synchronous programs: the same methods, blocking."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from tasker.app import sync_services
from tasker.app.app import App
from tasker.app.lifecycle import SubmitOptions
from tasker.app.started import forget, requires_start
from tasker.app.sync_wrapper import LoopThread, SyncWrapper, sync_method, with_parameters_of
from tasker.db.caller_transaction import caller_transaction
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.process.stopping import STOP_GRACE_SECONDS
from tasker.services.incoming_events import SendOptions, send_in
from tasker.services.submission.in_transaction import LOCK_TIMEOUT_SECONDS
from tasker.services.submission.submit import SubmissionResult
from tasker.template.plan import Plan
from tasker.views.incoming_events import SentEvent

T = TypeVar("T")
SERVICES: dict[str, type[SyncWrapper[Any]]] = {
    "tasks": sync_services.SyncTasks,
    "search": sync_services.SyncTaskSearch,
    "steps": sync_services.SyncSteps,
    "pauses": sync_services.SyncPauses,
    "limits": sync_services.SyncLimits,
    "dead_letters": sync_services.SyncDeadLetters,
    "reruns": sync_services.SyncReruns,
    "replays": sync_services.SyncReplays,
    "schedules": sync_services.SyncSchedules,
    "plans": sync_services.SyncPlans,
    "workers": sync_services.SyncWorkers,
    "views": sync_services.SyncViews,
    "checks": sync_services.SyncChecks,
    "fleet": sync_services.SyncFleet,
    "analytics": sync_services.SyncAnalytics,
    "retention": sync_services.SyncRetention,
    "sizes": sync_services.SyncSizes,
    "doctor": sync_services.SyncDoctor,
    "repairs": sync_services.SyncRepairs,
    "events": sync_services.SyncEvents,
    "domain_events": sync_services.SyncDomainEvents,
    "incoming_events": sync_services.SyncIncomingEvents,
    "approvals": sync_services.SyncApprovals,
    "template_texts": sync_services.SyncTemplateTexts,
    "deployments": sync_services.SyncDeployments,
    "queues": sync_services.SyncQueues,
    "submissions": sync_services.SyncSubmissions,
    "requests": sync_services.SyncRequesting,
}
"""Sync wrapper for each service of an `App`."""


class SyncApp(SyncWrapper[App]):
    """Client and worker inside a synchronous program. Use it as `with tasker.SyncApp() as app:`; parameters as in
    `App`.

    The engine runs in its own thread, so this also works in a notebook, in which a loop is already running. Ctrl-C
    interrupts a wait; leaving the `with` block then releases running steps, and the task can be resumed. Another Ctrl-C
    ends the grace period.
    """

    opened_by = "with tasker.SyncApp() as app:"

    tasks = requires_start[sync_services.SyncTasks]()
    search = requires_start[sync_services.SyncTaskSearch]()
    steps = requires_start[sync_services.SyncSteps]()
    pauses = requires_start[sync_services.SyncPauses]()
    limits = requires_start[sync_services.SyncLimits]()
    dead_letters = requires_start[sync_services.SyncDeadLetters]()
    reruns = requires_start[sync_services.SyncReruns]()
    replays = requires_start[sync_services.SyncReplays]()
    schedules = requires_start[sync_services.SyncSchedules]()
    plans = requires_start[sync_services.SyncPlans]()
    workers = requires_start[sync_services.SyncWorkers]()
    views = requires_start[sync_services.SyncViews]()
    checks = requires_start[sync_services.SyncChecks]()
    fleet = requires_start[sync_services.SyncFleet]()
    analytics = requires_start[sync_services.SyncAnalytics]()
    retention = requires_start[sync_services.SyncRetention]()
    sizes = requires_start[sync_services.SyncSizes]()
    doctor = requires_start[sync_services.SyncDoctor]()
    repairs = requires_start[sync_services.SyncRepairs]()
    events = requires_start[sync_services.SyncEvents]()
    domain_events = requires_start[sync_services.SyncDomainEvents]()
    incoming_events = requires_start[sync_services.SyncIncomingEvents]()
    approvals = requires_start[sync_services.SyncApprovals]()
    template_texts = requires_start[sync_services.SyncTemplateTexts]()
    deployments = requires_start[sync_services.SyncDeployments]()
    queues = requires_start[sync_services.SyncQueues]()
    submissions = requires_start[sync_services.SyncSubmissions]()
    requests = requires_start[sync_services.SyncRequesting]()
    registry = requires_start[HandlerRegistry]()
    database_url = requires_start[str]()

    @with_parameters_of(App)
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(LoopThread("tasker app"), App(*args, **options))

    def __enter__(self) -> Self:
        """Connect, upgrade the schema and start working."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; running steps get the default grace of `stop`."""
        self.stop()

    def start(self) -> None:
        """Connect, upgrade the schema and start working."""
        self._loop.start()
        try:
            self._loop.complete(self._original.start)
            self._offer()
        except BaseException:
            self.stop(0.0)
            raise

    def _offer(self) -> None:
        self.database_url = self._original.database_url
        self.registry = self._original.registry
        for name, twin in SERVICES.items():
            setattr(self, name, twin(self._loop, getattr(self._original, name)))

    def stop(self, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Stop working (see `stop_working`) and close the database. May be called twice."""
        if not self._loop.running:
            return
        try:
            self._loop.complete(lambda: self._original.stop(grace_seconds))
        finally:
            self._loop.stop()
            forget(self)

    def submit_in(
        self,
        connection: Any,
        target: str | Path | Plan,
        context: Mapping[str, Any] | None = None,
        *,
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
        **options: Unpack[SubmitOptions],
    ) -> SubmissionResult:
        """Create a task in the caller's synchronous transaction, used in the caller's thread; see `App.submit_in`."""
        transaction = caller_transaction(connection)
        return self._prepare_submission(target, context, **options)(transaction, lock_timeout)

    def send_event_in(
        self,
        connection: Any,
        namespace: str,
        name: str,
        payload: Any = None,
        *,
        lock_timeout: float = LOCK_TIMEOUT_SECONDS,
        **options: Unpack[SendOptions],
    ) -> SentEvent:
        """Send an event in the caller's synchronous transaction; see `App.send_event_in`."""
        return send_in(caller_transaction(connection), namespace, name, payload, lock_timeout, **options)

    def stop_working(self, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Wait up to `grace_seconds` for running steps, then release them. Tasks can still be read."""
        self._loop.complete(lambda: self._original.stop_working(grace_seconds))

    @property
    def original(self) -> App:
        """The asynchronous app; run its coroutines with `wait_for`."""
        return self._original

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the asynchronous app and return its result."""
        return self._loop.wait(coroutine)

    submit = sync_method(App.submit)
    children = sync_method(App.children)
    send_event = sync_method(App.send_event)
    decide = sync_method(App.decide)
    submit_many = sync_method(App.submit_many)
    _prepare_submission = sync_method(App._prepare_submission)
    run = sync_method(App.run)
    wait = sync_method(App.wait)
    finished = sync_method(App.finished)
    pause = sync_method(App.pause)
    resume = sync_method(App.resume)
    plan = sync_method(App.plan)
    plan_of = sync_method(App.plan_of)
    pinned_plan = sync_method(App.pinned_plan)
