"""What the routes call: the services of a process, the same that `App` offers to programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fastapi import Request

from tasker.contracts.plan import Plan
from tasker.errors import TaskerError
from tasker.resilience.registry import Breakers
from tasker.services.client_views import ClientViews
from tasker.services.dead_letters.entries import DeadLetters
from tasker.services.dead_letters.replays import Replays
from tasker.services.domain_events.log import DomainEventLog
from tasker.services.engine.plans import PlanStore
from tasker.services.fleet.analytics import Analytics
from tasker.services.fleet.doctor import Doctor
from tasker.services.fleet.overview import FleetOverview
from tasker.services.fleet.workers import Workers
from tasker.services.operators.reruns import Reruns
from tasker.services.operators.steps import Steps
from tasker.services.pauses import Pauses
from tasker.services.server.bulk_submission import TemplateSubmission
from tasker.services.server.health import ServerHealth
from tasker.services.server.metrics import ServerMetrics
from tasker.services.server.operator_log import AuditLog
from tasker.services.server.page_sessions import PageSessions
from tasker.services.server.queues import Queues
from tasker.services.server.saved_views import SavedViews
from tasker.services.server.sensitive_values import SensitiveValues
from tasker.services.server.task_events import TaskEvents
from tasker.services.server.template_texts import TemplateTexts
from tasker.services.submitting.requesting import TaskRequestSender
from tasker.services.submitting.submission import OnDuplicate, SubmissionResult
from tasker.services.task_search import TaskSearch
from tasker.services.tasks import Tasks


class ServerServices(Protocol):
    """The services of this process, and waiting, as `App` has them."""

    @property
    def breakers(self) -> Breakers:
        """The circuit breakers of this process."""
        ...

    @property
    def tasks(self) -> Tasks:
        """Reading and steering tasks."""
        ...

    @property
    def search(self) -> TaskSearch:
        """Finding tasks."""
        ...

    @property
    def views(self) -> ClientViews:
        """Tasks and steps as clients see them."""
        ...

    @property
    def steps(self) -> Steps:
        """What operators do to steps."""
        ...

    @property
    def reruns(self) -> Reruns:
        """Tasks that run again from one of their steps."""
        ...

    @property
    def plans(self) -> PlanStore:
        """Registered templates."""
        ...

    @property
    def analytics(self) -> Analytics:
        """How tasks have gone lately."""
        ...

    @property
    def fleet(self) -> FleetOverview:
        """How the fleet does now."""
        ...

    @property
    def doctor(self) -> Doctor:
        """What is wrong with it."""
        ...

    @property
    def dead_letters(self) -> DeadLetters:
        """Tasks that need a person."""
        ...

    @property
    def replays(self) -> Replays:
        """Their failed steps again, a group at a time."""
        ...

    @property
    def pauses(self) -> Pauses:
        """What must not start for now."""
        ...

    @property
    def workers(self) -> Workers:
        """The registry of processes."""
        ...

    @property
    def health(self) -> ServerHealth:
        """How the process does."""
        ...

    @property
    def metrics(self) -> ServerMetrics:
        """The same in numbers, and how the fleet does."""
        ...

    @property
    def events(self) -> TaskEvents:
        """What happens to a task."""
        ...

    @property
    def domain_events(self) -> DomainEventLog:
        """What steps have published."""
        ...

    @property
    def template_texts(self) -> TemplateTexts:
        """Templates that come as text."""
        ...

    @property
    def sensitive_values(self) -> SensitiveValues:
        """Which tasks have values that not everybody may read."""
        ...

    @property
    def operator_log(self) -> AuditLog:
        """Who asked for what over HTTP."""
        ...

    @property
    def saved_views(self) -> SavedViews:
        """Lists that are kept under a name."""
        ...

    @property
    def page_sessions(self) -> PageSessions:
        """Who is signed in on the web page."""
        ...

    @property
    def queues(self) -> Queues:
        """The provider's queues."""
        ...

    @property
    def requests(self) -> TaskRequestSender:
        """Asking orchestrators for tasks."""
        ...

    async def submit_order(
        self, order: TemplateSubmission, *, on_duplicate: OnDuplicate = "refuse", awaited: bool = False
    ) -> SubmissionResult:
        """As `App.submit_order`."""
        ...

    async def pinned_plan(self, task_uuid: str) -> Plan:
        """As `App.pinned_plan`."""
        ...

    async def submit_orders(
        self, orders: Sequence[TemplateSubmission], *, on_duplicate: OnDuplicate = "refuse"
    ) -> list[SubmissionResult | TaskerError]:
        """As `App.submit_orders`."""
        ...

    async def finished(self, task_uuid: str, *, timeout: float | None = None) -> None:
        """As `App.finished`."""
        ...


def program_of(request: Request) -> ServerServices:
    """The services that answer this request."""
    program: ServerServices = request.app.state.program
    return program
