"""`App` for programs that are not asynchronous: the same methods, each of which waits."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from tasker.app.embedded import sync_services as sync
from tasker.app.embedded.app import App
from tasker.app.embedded.loop_thread import LoopThread
from tasker.app.embedded.options import SubmitOptions
from tasker.app.embedded.started import Started, forget
from tasker.app.embedded.twin import Twin, waiting, with_parameters_of
from tasker.contracts.defaults.workers import STOP_GRACE_SECONDS
from tasker.contracts.plan import Plan
from tasker.db.caller_transaction import caller_transaction
from tasker.handler import HandlerRegistry
from tasker.services.submitting.caller_submission import LOCK_TIMEOUT_SECONDS
from tasker.services.submitting.submission import Submitted

T = TypeVar("T")
SERVICES: dict[str, type[Twin[Any]]] = {
    "tasks": sync.SyncTasks,
    "search": sync.SyncTaskSearch,
    "steps": sync.SyncSteps,
    "pauses": sync.SyncPauses,
    "dead_letters": sync.SyncDeadLetters,
    "reruns": sync.SyncReruns,
    "replays": sync.SyncReplays,
    "plans": sync.SyncPlans,
    "workers": sync.SyncWorkers,
    "views": sync.SyncViews,
    "checks": sync.SyncChecks,
    "fleet": sync.SyncFleet,
    "analytics": sync.SyncAnalytics,
    "retention": sync.SyncRetention,
    "sizes": sync.SyncSizes,
    "doctor": sync.SyncDoctor,
    "repairs": sync.SyncRepairs,
    "events": sync.SyncEvents,
    "domain_events": sync.SyncDomainEvents,
    "template_texts": sync.SyncTemplateTexts,
    "queues": sync.SyncQueues,
    "requests": sync.SyncRequesting,
}
"""What stands for each service of an `App`."""


class SyncApp(Twin[App]):
    """Submits tasks and works on them. Use it as `with tasker.SyncApp() as app:`; parameters as `App`.

    The engine runs in a thread of its own, so this works in a notebook as well, where a loop runs already. Ctrl-C ends
    the waiting; leaving the `with` block gives back what runs, and the task can be resumed. Ctrl-C then ends the
    grace.
    """

    opened_by = "with tasker.SyncApp() as app:"

    tasks = Started[sync.SyncTasks]()
    search = Started[sync.SyncTaskSearch]()
    steps = Started[sync.SyncSteps]()
    pauses = Started[sync.SyncPauses]()
    dead_letters = Started[sync.SyncDeadLetters]()
    reruns = Started[sync.SyncReruns]()
    replays = Started[sync.SyncReplays]()
    plans = Started[sync.SyncPlans]()
    workers = Started[sync.SyncWorkers]()
    views = Started[sync.SyncViews]()
    checks = Started[sync.SyncChecks]()
    fleet = Started[sync.SyncFleet]()
    analytics = Started[sync.SyncAnalytics]()
    retention = Started[sync.SyncRetention]()
    sizes = Started[sync.SyncSizes]()
    doctor = Started[sync.SyncDoctor]()
    repairs = Started[sync.SyncRepairs]()
    events = Started[sync.SyncEvents]()
    domain_events = Started[sync.SyncDomainEvents]()
    template_texts = Started[sync.SyncTemplateTexts]()
    queues = Started[sync.SyncQueues]()
    requests = Started[sync.SyncRequesting]()
    registry = Started[HandlerRegistry]()
    database_url = Started[str]()

    @with_parameters_of(App)
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(LoopThread("tasker app"), App(*args, **options))

    def __enter__(self) -> Self:
        """Connect, bring the schema up to date and start working."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; steps that run are given `stop`'s grace."""
        self.stop()

    def start(self) -> None:
        """Connect, bring the schema up to date and start working."""
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
        """Stop working (see `stop_working`) and let go of the database. May be called twice."""
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
    ) -> Submitted:
        """As `App.submit_in`, for a synchronous connection or session; it is used in the caller's thread."""
        transaction = caller_transaction(connection)
        return self.prepare_submission(target, context, **options)(transaction, lock_timeout)

    def stop_working(self, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Steps that run get `grace_seconds`, then they are given back; tasks can still be read."""
        self._loop.complete(lambda: self._original.stop_working(grace_seconds))

    @property
    def original(self) -> App:
        """The asynchronous app; its coroutines run through `wait_for`."""
        return self._original

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What a coroutine of the asynchronous app returns."""
        return self._loop.wait(coroutine)

    submit = waiting(App.submit)
    submit_request = waiting(App.submit_request)
    submit_order = waiting(App.submit_order)
    submit_orders = waiting(App.submit_orders)
    submit_many = waiting(App.submit_many)
    prepare_submission = waiting(App.prepare_submission)
    run = waiting(App.run)
    wait = waiting(App.wait)
    finished = waiting(App.finished)
    pause = waiting(App.pause)
    resume = waiting(App.resume)
    plan = waiting(App.plan)
    plan_of = waiting(App.plan_of)
    pinned_plan = waiting(App.pinned_plan)
