"""Services that the routes call, the same that `App` offers to programs."""

from __future__ import annotations

from typing import Protocol, cast

from fastapi import Request

from tasker.engine.plans import PlanStore
from tasker.operations.permissions import Permission
from tasker.resilience.breakers import Breakers
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.services.approvals import Approvals
from tasker.services.audit import AuditLog
from tasker.services.domain_events import DomainEventLog
from tasker.services.fleet.analytics import Analytics
from tasker.services.fleet.brokers import Queues
from tasker.services.fleet.doctor import Doctor
from tasker.services.fleet.health import ServerHealth
from tasker.services.fleet.limits import Limits
from tasker.services.fleet.metrics import ServerMetrics
from tasker.services.fleet.overview import FleetOverview, Workers
from tasker.services.incoming_events import IncomingEvents
from tasker.services.operators.dead_letters import DeadLetters
from tasker.services.operators.pauses import Pauses
from tasker.services.operators.replays import Replays
from tasker.services.operators.reruns import Reruns
from tasker.services.operators.steps import Steps
from tasker.services.page_sessions import PageSessions
from tasker.services.schedules import Schedules
from tasker.services.submission.by_message import TaskRequestSender
from tasker.services.submission.registered import Submissions
from tasker.services.tasks.history import TaskEvents
from tasker.services.tasks.lists import SavedViews
from tasker.services.tasks.pages import TaskPages
from tasker.services.tasks.read import Tasks
from tasker.services.tasks.search import ClientViews, TaskSearch
from tasker.services.viewer import STRANGER, SeenServices, SensitiveValues, Viewer
from tasker.services.workflows.deployments import Deployments
from tasker.services.workflows.texts import TemplateTexts
from tasker.template.plan import Plan


class ServerServices(Protocol):
    """Services of this process and the methods of `App` that submit tasks and wait for them."""

    @property
    def breakers(self) -> Breakers:
        """Circuit breakers of this process."""
        ...

    @property
    def limits(self) -> Limits:
        """Service of limits of what runs at the same time."""
        ...

    @property
    def tasks(self) -> Tasks:
        """Service that reads and controls tasks."""
        ...

    @property
    def search(self) -> TaskSearch:
        """Service that searches tasks."""
        ...

    @property
    def views(self) -> ClientViews:
        """Service that returns tasks and steps in the form of the API."""
        ...

    @property
    def steps(self) -> Steps:
        """Service for operator actions on steps."""
        ...

    @property
    def reruns(self) -> Reruns:
        """Service that runs tasks again from one of their steps."""
        ...

    @property
    def plans(self) -> PlanStore:
        """Store of the registered templates."""
        ...

    @property
    def analytics(self) -> Analytics:
        """Statistics of recent tasks."""
        ...

    @property
    def fleet(self) -> FleetOverview:
        """Overview of the fleet's current state."""
        ...

    @property
    def doctor(self) -> Doctor:
        """Checks that find problems of the fleet."""
        ...

    @property
    def dead_letters(self) -> DeadLetters:
        """Dead letters: tasks that need an operator."""
        ...

    @property
    def replays(self) -> Replays:
        """Replays: failed steps of dead letters that run again in groups."""
        ...

    @property
    def schedules(self) -> Schedules:
        """Schedules, which submit tasks by themselves."""
        ...

    @property
    def pauses(self) -> Pauses:
        """Pauses of namespaces, templates, steps, tasks and queues."""
        ...

    @property
    def workers(self) -> Workers:
        """Registry of processes."""
        ...

    @property
    def health(self) -> ServerHealth:
        """Health of the process."""
        ...

    @property
    def metrics(self) -> ServerMetrics:
        """Metrics of the process and the fleet."""
        ...

    @property
    def events(self) -> TaskEvents:
        """Events of a task."""
        ...

    @property
    def incoming_events(self) -> IncomingEvents:
        """Events for steps that wait."""
        ...

    @property
    def approvals(self) -> Approvals:
        """Decisions of persons for which steps wait."""
        ...

    @property
    def domain_events(self) -> DomainEventLog:
        """Log of the domain events that steps published."""
        ...

    @property
    def template_texts(self) -> TemplateTexts:
        """Service that registers and validates templates in YAML."""
        ...

    @property
    def deployments(self) -> Deployments:
        """Service that plans and applies the registration of several templates."""
        ...

    @property
    def task_pages(self) -> TaskPages:
        """Parts of a task for the page that shows it."""
        ...

    @property
    def sensitive_values(self) -> SensitiveValues:
        """Service that knows which tasks have sensitive values, and redacts them."""
        ...

    @property
    def operator_log(self) -> AuditLog:
        """Audit log of operator actions."""
        ...

    @property
    def saved_views(self) -> SavedViews:
        """Saved views: searches stored under a name."""
        ...

    @property
    def page_sessions(self) -> PageSessions:
        """Sessions of the web UI."""
        ...

    @property
    def queues(self) -> Queues:
        """Queues of the messaging provider."""
        ...

    @property
    def submissions(self) -> Submissions:
        """Service that creates tasks of registered templates."""
        ...

    @property
    def requests(self) -> TaskRequestSender:
        """Sender of task requests to orchestrators."""
        ...

    async def pinned_plan(self, task_uuid: str) -> Plan:
        """Return the plan of a task; see `App.pinned_plan`."""
        ...

    async def finished(self, task_uuid: str, *, timeout: float | None = None) -> None:
        """Return when the task has ended; see `App.finished`."""
        ...


def program_of(request: Request) -> ServerServices:
    """Return the services that answer this request, as its caller may see them."""
    caller: AuthenticatedCaller | None = getattr(request.state, "caller", None)
    viewer = STRANGER if caller is None else Viewer(caller.namespaces(Permission.DATA_READ_SENSITIVE))
    program = request.app.state.program
    return program if viewer.sees_everything else cast(ServerServices, SeenServices(program, viewer))
