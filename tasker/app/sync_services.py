"""Sync wrappers of an app's services."""

from __future__ import annotations

from collections.abc import Generator

from tasker.app.sync_wrapper import SyncWrapper, iterate, sync_iterator, sync_method
from tasker.engine.plans import PlanStore
from tasker.process.releases import Repairs
from tasker.services.approvals import Approvals
from tasker.services.database import DatabaseSizes, RetentionService
from tasker.services.domain_events import DomainEventLog
from tasker.services.fleet.analytics import Analytics
from tasker.services.fleet.brokers import Queues
from tasker.services.fleet.doctor import Checks, Doctor
from tasker.services.fleet.limits import Limits
from tasker.services.fleet.overview import FleetOverview, Workers
from tasker.services.incoming_events import IncomingEvents
from tasker.services.operators.dead_letters import DeadLetters
from tasker.services.operators.pauses import Pauses
from tasker.services.operators.replays import Replays
from tasker.services.operators.reruns import Reruns
from tasker.services.operators.steps import Steps
from tasker.services.schedules import Schedules
from tasker.services.submission.by_message import TaskRequestSender
from tasker.services.submission.registered import Submissions
from tasker.services.tasks.history import TaskEvent, TaskEvents
from tasker.services.tasks.read import Tasks
from tasker.services.tasks.search import ClientViews, TaskSearch
from tasker.services.workflows.deployments import Deployments
from tasker.services.workflows.texts import TemplateTexts


class SyncTasks(SyncWrapper[Tasks]):
    """Sync wrapper of `Tasks`."""

    report = sync_method(Tasks.report)
    explain = sync_method(Tasks.explain)
    state = sync_method(Tasks.state)
    progress = sync_method(Tasks.progress)
    template_id = sync_method(Tasks.template_id)
    starting_with = sync_method(Tasks.starting_with)
    open_beside = sync_method(Tasks.open_beside)
    list = sync_method(Tasks.list)
    history = sync_method(Tasks.history)
    logs = sync_method(Tasks.logs)
    cancel = sync_method(Tasks.cancel)
    compensate = sync_method(Tasks.compensate)
    children = sync_method(Tasks.children)
    refused = sync_method(Tasks.refused)
    step_extras = sync_method(Tasks.step_extras)
    history_of_steps = sync_method(Tasks.history_of_steps)


class SyncTaskSearch(SyncWrapper[TaskSearch]):
    """Sync wrapper of `TaskSearch`."""

    find = sync_method(TaskSearch.find)


class SyncSteps(SyncWrapper[Steps]):
    """Sync wrapper of `Steps`."""

    reset = sync_method(Steps.reset)
    retry = sync_method(Steps.retry)
    resolve = sync_method(Steps.resolve)
    complete = sync_method(Steps.complete)


class SyncPlans(SyncWrapper[PlanStore]):
    """Sync wrapper of `PlanStore`."""

    register = sync_method(PlanStore.register)
    register_all = sync_method(PlanStore.register_all)
    pinned = sync_method(PlanStore.pinned)
    get = sync_method(PlanStore.get)
    find = sync_method(PlanStore.find)
    refresh = sync_method(PlanStore.refresh)
    registered = sync_method(PlanStore.registered)
    newest = sync_method(PlanStore.newest)
    count = sync_method(PlanStore.count)


class SyncApprovals(SyncWrapper[Approvals]):
    """Sync wrapper of `Approvals`."""

    list = sync_method(Approvals.list)
    get = sync_method(Approvals.get)
    decide = sync_method(Approvals.decide)
    link = sync_method(Approvals.link)


class SyncLimits(SyncWrapper[Limits]):
    """Sync wrapper of `Limits`."""

    list = sync_method(Limits.list)


class SyncPauses(SyncWrapper[Pauses]):
    """Sync wrapper of `Pauses`."""

    pause = sync_method(Pauses.pause)
    resume = sync_method(Pauses.resume)
    list = sync_method(Pauses.list)
    of_task = sync_method(Pauses.of_task)


class SyncWorkers(SyncWrapper[Workers]):
    """Sync wrapper of `Workers`."""

    list = sync_method(Workers.list)
    handlers = sync_method(Workers.handlers)
    serving = sync_method(Workers.serving)


class SyncViews(SyncWrapper[ClientViews]):
    """Sync wrapper of `ClientViews`."""

    task = sync_method(ClientViews.task)
    context = sync_method(ClientViews.context)
    details = sync_method(ClientViews.details)
    template = sync_method(ClientViews.template)
    task_page = sync_method(ClientViews.task_page)
    namespace = sync_method(ClientViews.namespace)
    owner = sync_method(ClientViews.owner)
    tasks = sync_method(ClientViews.tasks)
    page = sync_method(ClientViews.page)
    some = sync_method(ClientViews.some)
    part = sync_method(ClientViews.part)
    count = sync_method(ClientViews.count)
    inputs_are_indexed = sync_method(ClientViews.inputs_are_indexed)
    steps = sync_method(ClientViews.steps)
    step = sync_method(ClientViews.step)
    inputs = sync_method(ClientViews.inputs)
    audit = sync_method(ClientViews.audit)
    health = sync_method(ClientViews.health)


class SyncDeadLetters(SyncWrapper[DeadLetters]):
    """Sync wrapper of `DeadLetters`."""

    list = sync_method(DeadLetters.list)
    of_task = sync_method(DeadLetters.of_task)
    entry = sync_method(DeadLetters.entry)
    stats = sync_method(DeadLetters.stats)
    queue = sync_method(DeadLetters.queue)
    staleness = sync_method(DeadLetters.staleness)
    groups = sync_method(DeadLetters.groups)
    trend = sync_method(DeadLetters.trend)
    open = sync_method(DeadLetters.open)
    update = sync_method(DeadLetters.update)
    retry = sync_method(DeadLetters.retry)


class SyncReruns(SyncWrapper[Reruns]):
    """Sync wrapper of `Reruns`."""

    start = sync_method(Reruns.start)


class SyncReplays(SyncWrapper[Replays]):
    """Sync wrapper of `Replays`."""

    plan = sync_method(Replays.plan)
    begin = sync_method(Replays.begin)
    advance = sync_method(Replays.advance)
    list = sync_method(Replays.list)
    get = sync_method(Replays.get)
    skipped = sync_method(Replays.skipped)
    steer = sync_method(Replays.steer)


class SyncSchedules(SyncWrapper[Schedules]):
    """Sync wrapper of `Schedules`."""

    list = sync_method(Schedules.list)
    get = sync_method(Schedules.get)
    fires = sync_method(Schedules.fires)
    upcoming = sync_method(Schedules.upcoming)
    create = sync_method(Schedules.create)
    pause = sync_method(Schedules.pause)
    resume = sync_method(Schedules.resume)
    delete = sync_method(Schedules.delete)
    trigger = sync_method(Schedules.trigger)
    plan_backfill = sync_method(Schedules.plan_backfill)
    backfill = sync_method(Schedules.backfill)


class SyncChecks(SyncWrapper[Checks]):
    """Sync wrapper of `Checks`."""

    run = sync_method(Checks.run)


class SyncFleet(SyncWrapper[FleetOverview]):
    """Sync wrapper of `FleetOverview`."""

    overview = sync_method(FleetOverview.overview)
    activity = sync_method(FleetOverview.activity)
    backlog = sync_method(FleetOverview.backlog)
    in_flight = sync_method(FleetOverview.in_flight)


class SyncAnalytics(SyncWrapper[Analytics]):
    """Sync wrapper of `Analytics`."""

    performance = sync_method(Analytics.performance)
    paces = sync_method(Analytics.paces)
    bottlenecks = sync_method(Analytics.bottlenecks)
    versions = sync_method(Analytics.versions)
    scaling = sync_method(Analytics.scaling)


class SyncRetention(SyncWrapper[RetentionService]):
    """Sync wrapper of `RetentionService`."""

    prunable = sync_method(RetentionService.prunable)
    prune = sync_method(RetentionService.prune)
    may_delete = sync_method(RetentionService.may_delete)
    targets = sync_method(RetentionService.targets)
    delete_slice = sync_method(RetentionService.delete_slice)


class SyncSizes(SyncWrapper[DatabaseSizes]):
    """Sync wrapper of `DatabaseSizes`."""

    read = sync_method(DatabaseSizes.read)
    costly = sync_method(DatabaseSizes.costly)


class SyncDoctor(SyncWrapper[Doctor]):
    """Sync wrapper of `Doctor`."""

    findings = sync_method(Doctor.findings)


class SyncRepairs(SyncWrapper[Repairs]):
    """Sync wrapper of `Repairs`."""

    run = sync_method(Repairs.run)


class SyncQueues(SyncWrapper[Queues]):
    """Sync wrapper of `Queues`."""

    report = sync_method(Queues.report)


class SyncIncomingEvents(SyncWrapper[IncomingEvents]):
    """Sync wrapper of `IncomingEvents`."""

    send = sync_method(IncomingEvents.send)
    list = sync_method(IncomingEvents.list)


class SyncSubmissions(SyncWrapper[Submissions]):
    """Sync wrapper of `Submissions`."""

    submit = sync_method(Submissions.submit)
    submit_many = sync_method(Submissions.submit_many)


class SyncRequesting(SyncWrapper[TaskRequestSender]):
    """Sync wrapper of `TaskRequestSender`."""

    request = sync_method(TaskRequestSender.request)
    ask = sync_method(TaskRequestSender.ask)
    finalize = sync_method(TaskRequestSender.finalize)
    prepare = sync_method(TaskRequestSender.prepare)


class SyncDeployments(SyncWrapper[Deployments]):
    """Sync wrapper of `Deployments`."""

    plan = sync_method(Deployments.plan)
    apply = sync_method(Deployments.apply)


class SyncTemplateTexts(SyncWrapper[TemplateTexts]):
    """Sync wrapper of `TemplateTexts`."""

    compiled = sync_method(TemplateTexts.compiled)
    register = sync_method(TemplateTexts.register)
    page = sync_method(TemplateTexts.page)
    detail = sync_method(TemplateTexts.detail)
    validation = sync_method(TemplateTexts.validation)


class SyncDomainEvents(SyncWrapper[DomainEventLog]):
    """Sync wrapper of `DomainEventLog`."""

    page = sync_method(DomainEventLog.page)
    callback_url = sync_method(DomainEventLog.callback_url)
    withheld = sync_method(DomainEventLog.withheld)
    subscribers = sync_method(DomainEventLog.subscribers)
    replay = sync_method(DomainEventLog.replay)
    follow = sync_iterator(DomainEventLog.follow)
    subscribe = sync_iterator(DomainEventLog.subscribe)


class SyncEvents(SyncWrapper[TaskEvents]):
    """Sync wrapper of `TaskEvents`."""

    def follow(
        self, task_uuid: str, place: str | None = None, *, quiet_seconds: float = 15.0
    ) -> Generator[TaskEvent | None] | None:
        """Yield a task's events, or return None; see `TaskEvents.follow`."""
        events = self._loop.wait(self._original.follow(task_uuid, place, quiet_seconds=quiet_seconds))
        return None if events is None else iterate(self._loop, events)

    close = sync_method(TaskEvents.close)
