"""`App` for programs that are not asynchronous: the same methods, each of which waits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

from tasker.app.embedded.app import App
from tasker.app.embedded.loop_thread import LoopThread
from tasker.app.embedded.options import SubmitOptions
from tasker.app.embedded.started import Started, forget
from tasker.contracts.plan import Plan
from tasker.db.caller_transaction import caller_transaction
from tasker.services.caller_submission import LOCK_TIMEOUT_SECONDS
from tasker.services.client_views import ClientViews
from tasker.services.dead_letters.entries import DeadLetters
from tasker.services.engine.plans import PlanStore
from tasker.services.operators.reruns import Reruns
from tasker.services.operators.steps import Steps
from tasker.services.pauses import Pauses
from tasker.services.submission import Submitted
from tasker.services.tasks import Tasks
from tasker.services.workers import Workers

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Twin(Generic[A_co]):
    """An object whose methods wait for the asynchronous ones of `original`, which run in the loop's thread."""

    def __init__(self, loop: LoopThread, original: A_co) -> None:
        self._loop, self._original = loop, original


def waiting(method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Twin[A], P], T]:
    """The method of a twin for an asynchronous method: same name, parameters and documentation."""

    @wraps(method)
    def wait(twin: Twin[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return twin._loop.wait(method(twin._original, *args, **kwargs))

    return wait


def with_parameters_of(
    made: Callable[P, object],
) -> Callable[[Callable[Concatenate[S, ...], None]], Callable[Concatenate[S, P], None]]:
    """Of an `__init__` that hands all it gets to `made`: its parameters are shown and checked as those of `made`."""

    def decorate(init: Callable[Concatenate[S, ...], None]) -> Callable[Concatenate[S, P], None]:
        init.__wrapped__ = made.__init__  # type: ignore[attr-defined]
        return init

    return decorate


class SyncTasks(Twin[Tasks]):
    """`Tasks`, waiting."""

    report = waiting(Tasks.report)
    explain = waiting(Tasks.explain)
    state = waiting(Tasks.state)
    progress = waiting(Tasks.progress)
    template_id = waiting(Tasks.template_id)
    starting_with = waiting(Tasks.starting_with)
    open_beside = waiting(Tasks.open_beside)
    list = waiting(Tasks.list)
    history = waiting(Tasks.history)
    cancel = waiting(Tasks.cancel)
    refused = waiting(Tasks.refused)


class SyncSteps(Twin[Steps]):
    """`Steps`, waiting."""

    reset = waiting(Steps.reset)
    retry = waiting(Steps.retry)
    resolve = waiting(Steps.resolve)
    complete = waiting(Steps.complete)


class SyncReruns(Twin[Reruns]):
    """`Reruns`, waiting."""

    start = waiting(Reruns.start)


class SyncPlans(Twin[PlanStore]):
    """`PlanStore`, waiting."""

    register = waiting(PlanStore.register)
    get = waiting(PlanStore.get)
    find = waiting(PlanStore.find)
    registered = waiting(PlanStore.registered)


class SyncPauses(Twin[Pauses]):
    """`Pauses`, waiting."""

    pause = waiting(Pauses.pause)
    resume = waiting(Pauses.resume)
    list = waiting(Pauses.list)


class SyncWorkers(Twin[Workers]):
    """`Workers`, waiting."""

    list = waiting(Workers.list)


class SyncViews(Twin[ClientViews]):
    """`ClientViews`, waiting."""

    task = waiting(ClientViews.task)
    tasks = waiting(ClientViews.tasks)
    page = waiting(ClientViews.page)
    count = waiting(ClientViews.count)
    steps = waiting(ClientViews.steps)
    step = waiting(ClientViews.step)
    audit = waiting(ClientViews.audit)
    namespace = waiting(ClientViews.namespace)
    health = waiting(ClientViews.health)
    namespace = waiting(ClientViews.namespace)


class SyncDeadLetters(Twin[DeadLetters]):
    """`DeadLetters`, waiting."""

    list = waiting(DeadLetters.list)
    of_task = waiting(DeadLetters.of_task)
    entry = waiting(DeadLetters.entry)
    stats = waiting(DeadLetters.stats)
    queue = waiting(DeadLetters.queue)
    staleness = waiting(DeadLetters.staleness)
    groups = waiting(DeadLetters.groups)
    open = waiting(DeadLetters.open)
    update = waiting(DeadLetters.update)


class SyncApp(Twin[App]):
    """Submits tasks and works on them. Use it as `with tasker.SyncApp() as app:`; parameters as `App`.

    The engine runs in a thread of its own, so this works in a notebook as well, where a loop runs already. Ctrl-C ends
    the waiting; leaving the `with` block gives back what runs, and the task can be resumed.
    """

    opened_by = "with tasker.SyncApp() as app:"

    tasks = Started[SyncTasks]()
    steps = Started[SyncSteps]()
    pauses = Started[SyncPauses]()
    dead_letters = Started[SyncDeadLetters]()
    plans = Started[SyncPlans]()
    workers = Started[SyncWorkers]()
    views = Started[SyncViews]()
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
            self._loop.wait(self._original.start())
        except BaseException:
            self._loop.stop()
            raise
        self.database_url = self._original.database_url
        self.tasks = SyncTasks(self._loop, self._original.tasks)
        self.steps = SyncSteps(self._loop, self._original.steps)
        self.reruns = SyncReruns(self._loop, self._original.reruns)
        self.pauses = SyncPauses(self._loop, self._original.pauses)
        self.dead_letters = SyncDeadLetters(self._loop, self._original.dead_letters)
        self.workers = SyncWorkers(self._loop, self._original.workers)
        self.plans = SyncPlans(self._loop, self._original.plans)
        self.views = SyncViews(self._loop, self._original.views)

    def stop(self, grace_seconds: float = 10.0) -> None:
        """Stop working (see `stop_working`) and let go of the database. May be called twice."""
        if not self._loop.running:
            return
        try:
            self._loop.wait(self._original.stop(grace_seconds))
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

    def stop_working(self, grace_seconds: float = 10.0) -> None:
        """Steps that run get `grace_seconds`, then they are given back; tasks can still be read."""
        self._loop.wait(self._original.stop_working(grace_seconds))

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
