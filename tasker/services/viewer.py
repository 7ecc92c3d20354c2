"""Viewers of services, and the redaction of answers for each.

Services whose answers have values of tasks are `Viewed`: each has a viewer, and redacts what that viewer may not read.
A program sees everything. A server and a command reach the services through `SeenServices`, which gives every service
its viewer, so that no route, page or command can forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from typing import Any, Protocol, Self, TypeVar

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.plans import PlanStore
from tasker.errors import NotPermitted, UsageError
from tasker.redaction import Redactor, has_sensitive, names_of_marked, without_messages
from tasker.template.plan import Plan
from tasker.views.tasks import Task, TaskReport

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Reader of answers, who may read sensitive values in the namespaces `sensitive`; None permits all."""

    sensitive: frozenset[str] | None = None

    @property
    def sees_everything(self) -> bool:
        """True if nothing is redacted."""
        return self.sensitive is None


PROGRAM = Viewer()
"""A program with the database: it sees everything."""
STRANGER = Viewer(frozenset())
"""A reader who may read no sensitive value."""


class Reports(Protocol):
    """Reading of a task's input and results, of all steps or of those with these names."""

    async def __call__(self, task_uuid: str, names: Collection[str] | None) -> TaskReport: ...


class Redaction:
    """Redaction of answers for one viewer. `reports` reads what has to be found in them."""

    def __init__(self, connection: Statements, plans: PlanStore, reports: Reports, viewer: Viewer = PROGRAM) -> None:
        self._connection, self._plans, self._reports, self.viewer = connection, plans, reports, viewer

    def seen_by(self, viewer: Viewer) -> Redaction:
        """Return the same for this viewer."""
        return Redaction(self._connection, self._plans, self._reports, viewer)

    async def redacted(self, task_uuid: str, answer: T) -> T:
        """Return an answer about one task without the values that the viewer may not read. Raises `TaskNotFound`."""
        if self.viewer.sees_everything:
            return answer
        rows = await self._connection.execute(query("tasks", "template_ids"), {"tasks": [task_uuid]})
        plan = await self._plans.get(rows[0][1]) if rows else None
        if plan is None or not self._hides(plan):
            return answer
        report = await self._reports(task_uuid, names_of_marked(plan))
        redacted: T = Redactor(plan, report.context, report.results).redact(answer)
        return redacted

    async def tasks(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """Return a list of tasks without the values that the viewer may not read, with one statement."""
        if self.viewer.sees_everything or not tasks:
            return tasks
        uuids = {"tasks": [task.task_uuid for task in tasks]}
        rows = await self._connection.execute(query("tasks", "template_ids"), uuids)
        plans = {str(task): await self._plans.get(template_id) for task, template_id in rows}
        hidden = {task: Redactor(plan) for task, plan in plans.items() if self._hides(plan)}
        return [hidden[task.task_uuid].redact(task) if task.task_uuid in hidden else task for task in tasks]

    async def failures(self, failures: Sequence[T], namespaces: Callable[[T], Iterable[str]]) -> Sequence[T]:
        """Return dead letters without the messages of failures in namespaces with sensitive values.

        Messages are removed whole because the sensitive part of a message is unknown.
        """
        hidden = await self._hidden_namespaces() if failures else frozenset()
        return [
            without_messages(failure) if hidden.intersection(namespaces(failure)) else failure for failure in failures
        ]

    async def require_searchable(self, namespace: str | None) -> None:
        """Check that the viewer may search tasks by their inputs.

        Raises `UsageError` if the inputs may have sensitive values that the viewer may not read: a search result would
        reveal them.
        """
        hidden = await self._hidden_namespaces()
        if hidden and (not namespace or namespace in hidden):
            hint = f"choose a namespace other than {', '.join(sorted(hidden))}"
            raise UsageError("inputs are not searched: they may contain values that you may not read", hint=hint)

    async def _hidden_namespaces(self) -> frozenset[str]:
        """Return the namespaces with sensitive values that the viewer may not read."""
        if self.viewer.sensitive is None:
            return frozenset()
        rows = await self._connection.execute(query("templates", "marked_namespaces"))
        return frozenset(name for (name,) in rows) - self.viewer.sensitive

    def _hides(self, plan: Plan) -> bool:
        permitted = self.viewer.sensitive
        return permitted is not None and plan.namespace not in permitted and has_sensitive(plan)


class Viewed:
    """Service whose answers show what its viewer may see: everything, until `seen_by` says who reads."""

    _redaction: Redaction | None = None

    def seen_by(self, viewer: Viewer) -> Self:
        """Return the service as this viewer sees it."""
        if self._redaction is None:
            raise TypeError(f"{type(self).__name__} was made without a redaction: it has no viewer but the program")
        seen = copy(self)
        seen._redaction = self._redaction.seen_by(viewer)
        return seen

    async def _shown(self, task_uuid: str, answer: T) -> T:
        """Return an answer about one task as the viewer may see it."""
        return answer if self._redaction is None else await self._redaction.redacted(task_uuid, answer)

    @property
    def _viewer(self) -> Viewer:
        return PROGRAM if self._redaction is None else self._redaction.viewer


class SensitiveValues(Viewed):
    """Redaction of answers that were read elsewhere, for the viewer given to `seen_by`."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    async def redacted(self, task_uuid: str, answer: T) -> T:
        """Return an answer about one task as the viewer may see it. Raises `TaskNotFound`."""
        return await self._shown(task_uuid, answer)


class SeenServices:
    """Services of a program as one viewer sees them; services that have no viewer are as they are."""

    def __init__(self, program: Any, viewer: Viewer) -> None:
        self._program, self._viewer = program, viewer

    def __getattr__(self, name: str) -> Any:
        service = getattr(self._program, name)
        return service.seen_by(self._viewer) if isinstance(service, Viewed) else service


def require_one_of(namespaces: Collection[str] | None, namespace: str) -> None:
    """Check that a caller limited to these namespaces may act in this one; None permits all. Raises `NotPermitted`."""
    if namespaces is not None and namespace not in namespaces:
        raise NotPermitted(f"Missing required permission: this is not permitted in namespace {namespace}")
