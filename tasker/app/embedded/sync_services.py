"""The services of an app, each of whose methods waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Generator
from typing import Any, TypeVar

from tasker.app.embedded.loop_thread import LoopThread
from tasker.app.embedded.twin import Twin, waiting
from tasker.process.repairing import Repairs
from tasker.services.checks import Checks
from tasker.services.client_views import ClientViews
from tasker.services.database.retention import Retention
from tasker.services.database.sizes import DatabaseSizes
from tasker.services.dead_letters.entries import DeadLetters
from tasker.services.dead_letters.replays import Replays
from tasker.services.domain_events.log import EVERY, DomainEvents
from tasker.services.domain_events.values import EventFilter, PublishedEvent
from tasker.services.engine.plans import PlanStore
from tasker.services.fleet.analytics import Analytics
from tasker.services.fleet.doctor import Doctor
from tasker.services.fleet.overview import Fleet
from tasker.services.fleet.workers import Workers
from tasker.services.operators.reruns import Reruns
from tasker.services.operators.steps import Steps
from tasker.services.pauses import Pauses
from tasker.services.server.queues import Queues
from tasker.services.server.task_events import TaskEvents
from tasker.services.server.task_history import TaskEvent
from tasker.services.server.template_texts import TemplateTexts
from tasker.services.submitting.requesting import Requesting
from tasker.services.task_search import TaskSearch
from tasker.services.tasks import Tasks

T = TypeVar("T")


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
    logs = waiting(Tasks.logs)
    cancel = waiting(Tasks.cancel)
    refused = waiting(Tasks.refused)
    kept = waiting(Tasks.kept)


class SyncTaskSearch(Twin[TaskSearch]):
    """`TaskSearch`, waiting."""

    sought = waiting(TaskSearch.sought)


class SyncSteps(Twin[Steps]):
    """`Steps`, waiting."""

    reset = waiting(Steps.reset)
    retry = waiting(Steps.retry)
    resolve = waiting(Steps.resolve)
    complete = waiting(Steps.complete)


class SyncPlans(Twin[PlanStore]):
    """`PlanStore`, waiting."""

    register = waiting(PlanStore.register)
    pinned = waiting(PlanStore.pinned)
    get = waiting(PlanStore.get)
    find = waiting(PlanStore.find)
    refresh = waiting(PlanStore.refresh)
    registered = waiting(PlanStore.registered)


class SyncPauses(Twin[Pauses]):
    """`Pauses`, waiting."""

    pause = waiting(Pauses.pause)
    resume = waiting(Pauses.resume)
    list = waiting(Pauses.list)
    of_task = waiting(Pauses.of_task)


class SyncWorkers(Twin[Workers]):
    """`Workers`, waiting."""

    list = waiting(Workers.list)
    serving = waiting(Workers.serving)


class SyncViews(Twin[ClientViews]):
    """`ClientViews`, waiting."""

    task = waiting(ClientViews.task)
    namespace = waiting(ClientViews.namespace)
    tasks = waiting(ClientViews.tasks)
    page = waiting(ClientViews.page)
    some = waiting(ClientViews.some)
    count = waiting(ClientViews.count)
    inputs_are_indexed = waiting(ClientViews.inputs_are_indexed)
    steps = waiting(ClientViews.steps)
    step = waiting(ClientViews.step)
    audit = waiting(ClientViews.audit)
    health = waiting(ClientViews.health)


class SyncDeadLetters(Twin[DeadLetters]):
    """`DeadLetters`, waiting."""

    list = waiting(DeadLetters.list)
    of_task = waiting(DeadLetters.of_task)
    entry = waiting(DeadLetters.entry)
    stats = waiting(DeadLetters.stats)
    queue = waiting(DeadLetters.queue)
    staleness = waiting(DeadLetters.staleness)
    groups = waiting(DeadLetters.groups)
    trend = waiting(DeadLetters.trend)
    open = waiting(DeadLetters.open)
    update = waiting(DeadLetters.update)
    retry = waiting(DeadLetters.retry)


class SyncReruns(Twin[Reruns]):
    """`Reruns`, waiting."""

    start = waiting(Reruns.start)


class SyncReplays(Twin[Replays]):
    """`Replays`, waiting."""

    plan = waiting(Replays.plan)
    begin = waiting(Replays.begin)
    go_on = waiting(Replays.go_on)
    list = waiting(Replays.list)
    get = waiting(Replays.get)
    skipped = waiting(Replays.skipped)
    steer = waiting(Replays.steer)


class SyncChecks(Twin[Checks]):
    """`Checks`, waiting."""

    run = waiting(Checks.run)


class SyncFleet(Twin[Fleet]):
    """`Fleet`, waiting."""

    overview = waiting(Fleet.overview)
    activity = waiting(Fleet.activity)
    backlog = waiting(Fleet.backlog)
    in_hand = waiting(Fleet.in_hand)


class SyncAnalytics(Twin[Analytics]):
    """`Analytics`, waiting."""

    performance = waiting(Analytics.performance)
    paces = waiting(Analytics.paces)
    bottlenecks = waiting(Analytics.bottlenecks)
    versions = waiting(Analytics.versions)
    scaling = waiting(Analytics.scaling)


class SyncRetention(Twin[Retention]):
    """`Retention`, waiting."""

    prunable = waiting(Retention.prunable)
    prune = waiting(Retention.prune)
    may_delete = waiting(Retention.may_delete)
    targets = waiting(Retention.targets)
    delete_slice = waiting(Retention.delete_slice)


class SyncSizes(Twin[DatabaseSizes]):
    """`DatabaseSizes`, waiting."""

    read = waiting(DatabaseSizes.read)
    costly = waiting(DatabaseSizes.costly)


class SyncDoctor(Twin[Doctor]):
    """`Doctor`, waiting."""

    findings = waiting(Doctor.findings)


class SyncRepairs(Twin[Repairs]):
    """`Repairs`, waiting."""

    run = waiting(Repairs.run)


class SyncQueues(Twin[Queues]):
    """`Queues`, waiting."""

    report = waiting(Queues.report)


class SyncRequesting(Twin[Requesting]):
    """`Requesting`, waiting."""

    request = waiting(Requesting.request)
    ask = waiting(Requesting.ask)
    finalize = waiting(Requesting.finalize)
    prepare = waiting(Requesting.prepare)


class SyncTemplateTexts(Twin[TemplateTexts]):
    """`TemplateTexts`, waiting."""

    compiled = waiting(TemplateTexts.compiled)
    register = waiting(TemplateTexts.register)


class SyncDomainEvents(Twin[DomainEvents]):
    """`DomainEvents`, waiting."""

    page = waiting(DomainEvents.page)
    withheld = waiting(DomainEvents.withheld)
    subscribers = waiting(DomainEvents.subscribers)
    replay = waiting(DomainEvents.replay)

    def follow(
        self,
        which: EventFilter = EVERY,
        *,
        after: int | None = None,
        quiet_seconds: float = 15.0,
        namespaces: Collection[str] | None = None,
    ) -> Generator[PublishedEvent | None]:
        """As `DomainEvents.follow`."""
        options: dict[str, Any] = {"after": after, "quiet_seconds": quiet_seconds, "namespaces": namespaces}
        return each(self._loop, self._original.follow(which, **options))

    def subscribe(
        self,
        name: str,
        which: EventFilter = EVERY,
        *,
        holder: str | None = None,
        from_now: bool = False,
        lease_seconds: float = 30.0,
        namespaces: Collection[str] | None = None,
    ) -> Generator[PublishedEvent]:
        """As `DomainEvents.subscribe`: the events themselves."""
        options: dict[str, Any] = {"holder": holder, "from_now": from_now, "lease_seconds": lease_seconds}
        return each(self._loop, self._original.subscribe(name, which, **options, namespaces=namespaces).events())


class SyncEvents(Twin[TaskEvents]):
    """`TaskEvents`, waiting."""

    def follow(
        self, task_uuid: str, place: str | None = None, *, quiet_seconds: float = 15.0
    ) -> Generator[TaskEvent | None] | None:
        """As `TaskEvents.follow`."""
        found = self._loop.wait(self._original.follow(task_uuid, place, quiet_seconds=quiet_seconds))
        return None if found is None else each(self._loop, found)

    close = waiting(TaskEvents.close)


def each(loop: LoopThread, found: AsyncGenerator[T]) -> Generator[T]:
    """What an asynchronous generator yields, waited for; it is closed with this one."""
    try:
        while (item := loop.wait(_next(found))) is not None:
            yield item[0]
    finally:
        loop.wait(found.aclose())


async def _next(found: AsyncGenerator[T]) -> tuple[T] | None:
    """The next item; None at the end."""
    try:
        return (await anext(found),)
    except StopAsyncIteration:
        return None
