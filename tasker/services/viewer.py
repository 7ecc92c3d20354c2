"""Redaction of sensitive values for viewers without the permission to read them."""

from __future__ import annotations

from collections.abc import Collection

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.plans import PlanStore
from tasker.errors import NotPermitted
from tasker.redaction import Redactor, has_sensitive, names_of_marked
from tasker.services.tasks.pages import TaskPages
from tasker.services.tasks.read import Tasks
from tasker.template.plan import Plan


class SensitiveValues:
    """Factory of redactors for tasks whose templates mark values with `x-sensitive`."""

    def __init__(self, connection: Statements, plans: PlanStore, tasks: Tasks) -> None:
        self._connection, self._plans, self._tasks = connection, plans, tasks
        self._pages = TaskPages(connection)

    async def veil(self, task_uuid: str, permitted: Collection[str] | None) -> Redactor | None:
        """Return the redactor of a task for a viewer who may read sensitive values of the `permitted` namespaces.

        Return None if nothing has to be redacted; `permitted` None permits all. Raises `TaskNotFound`.
        """
        plan = await self._plans.get(await self._tasks.template_id(task_uuid))
        if not _is_covered(plan, permitted):
            return None
        names = names_of_marked(plan)
        report = await (self._tasks.report(task_uuid) if names is None else self._pages.steps(task_uuid, names))
        return Redactor(plan, report.context, report.results)

    async def namespaces(self, permitted: Collection[str]) -> frozenset[str]:
        """Return the namespaces with sensitive values that a viewer of the `permitted` ones may not read."""
        rows = await self._connection.execute(query("templates", "marked_namespaces"))
        return frozenset(name for (name,) in rows) - frozenset(permitted)

    async def veils(self, task_uuids: Collection[str], permitted: Collection[str] | None) -> dict[str, Redactor]:
        """Return redactors for the inputs of many tasks, with one statement; tasks that need none are left out."""
        rows = await self._connection.execute(query("tasks", "template_ids"), {"tasks": list(task_uuids)})
        plans = {task: await self._plans.get(template_id) for task, template_id in rows}
        return {task: Redactor(plan) for task, plan in plans.items() if _is_covered(plan, permitted)}


def require_one_of(namespaces: Collection[str] | None, namespace: str) -> None:
    """Check that a caller limited to these namespaces may act in this one; None permits all. Raises `NotPermitted`."""
    if namespaces is not None and namespace not in namespaces:
        raise NotPermitted(f"Missing required permission: this is not permitted in namespace {namespace}")


def _is_covered(plan: Plan, permitted: Collection[str] | None) -> bool:
    return permitted is not None and plan.namespace not in permitted and has_sensitive(plan)
