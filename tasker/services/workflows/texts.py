"""Templates given as text: compiled outside of the event loop, and registered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tasker.dataclasses import dataclass
from tasker.engine.plans import PlanStore, TemplateFilter
from tasker.errors import TemplateError, UsageError
from tasker.services.audit import audited
from tasker.services.cursors import cursor_after_template, template_place
from tasker.services.fleet.overview import Workers
from tasker.services.viewer import require_one_of
from tasker.template.diagnostics import Diagnostic
from tasker.template.plan import Plan
from tasker.template.plugin_rules import TemplateRules
from tasker.views.task_lists import Pagination
from tasker.views.templates import (
    NamespaceSummary,
    Registration,
    TemplateDetail,
    TemplatePage,
    TemplateSummary,
    TemplateValidation,
    registration,
    template_detail,
)

if TYPE_CHECKING:
    from tasker.template.compile import Origins
    from tasker.template.diff import Version

LISTED = ("namespace", "name", "version", "description", "updated_at")
COUNTED = 10_000
"""Number to which templates are counted."""
FILE = "request"
"""File name of the text in diagnostics."""


@dataclass(frozen=True, slots=True)
class CompiledTexts:
    """Plans of a text, and warnings; `versions` are the plans with their positions."""

    plans: Sequence[Plan]
    diagnostics: Sequence[Diagnostic]
    origins: Sequence[Origins]
    versions: Sequence[Version]


class TemplateTexts:
    """Service that compiles and registers template texts, and reads registered templates."""

    def __init__(self, plans: PlanStore, workers: Workers, rules: TemplateRules = ()) -> None:
        self._plans, self._workers, self._rules = plans, workers, rules

    async def compiled(self, text: str, environment: str | None = None) -> CompiledTexts:
        """Compile the templates of a text in a thread, because a large one would block the event loop.

        Raises `TemplateError` with every problem, `UsageError` for an unknown environment.
        """
        from tasker.services.workflows.files import require_environment
        from tasker.template.compile import compile_text
        from tasker.template.diff import Version
        from tasker.template.report import render_text

        compiling = partial(compile_text, text, file=FILE, environment=environment, rules=self._rules)
        result = await asyncio.to_thread(compiling)
        if not result.ok:
            raise TemplateError(render_text(result.errors, result.sources), diagnostics=result.diagnostics)
        require_environment(result, environment)
        if not result.plans:
            raise UsageError("the text contains no template", hint="a template has at least name and steps")
        versions = [Version(*pair) for pair in zip(result.plans, result.places, strict=True)]
        return CompiledTexts(result.plans, result.diagnostics, result.origins, versions)

    @audited("App.template_texts.register", "_plans._connection", several=True)
    async def register(
        self,
        text: str,
        environment: str | None = None,
        *,
        force: bool = False,
        validate_only: bool = False,
        namespaces: Collection[str] | None = None,
    ) -> Registration:
        """Register every template of a text, unless it is only to be validated.

        `namespaces`: only templates of these may be registered, and started by their steps; None allows all. Raises
        the errors of `compiled`, `NotPermitted`, and `TemplateError` for a version that has other content, unless
        `force` is set; templates before it in the text stay registered then.
        """
        from tasker.services.workflows.registration import unknown_limits_located
        from tasker.services.workflows.targets import templates_started

        compiled = await self.compiled(text, environment)
        if not validate_only:
            for plan in compiled.plans:
                for namespace in (plan.namespace, *sorted(namespace for namespace, _ in templates_started(plan))):
                    require_one_of(namespaces, namespace)
            for plan, origins in zip(compiled.plans, compiled.origins, strict=True):
                with unknown_limits_located(origins, {FILE: text}):
                    await self._plans.register(plan, force=force)
        return registration(compiled.plans, compiled.diagnostics, registered=not validate_only)

    async def page(
        self,
        namespace: str | None = None,
        *,
        name: str | None = None,
        page: int = 0,
        per_page: int = 50,
        cursor: str | None = None,
        namespaces: Collection[str] | None = None,
    ) -> TemplatePage:
        """Return a page of the registered templates in each version, with the namespaces of these templates.

        `namespaces`: only templates of these; None allows all. Raises `UsageError` for an invalid cursor.
        """
        which = TemplateFilter(namespace, name, None if namespaces is None else sorted(namespaces))
        after = template_place(cursor) if cursor else None
        offset = 0 if after else page * per_page
        rows = await self._plans.registered(which, limit=per_page + 1, offset=offset, after=after)
        shown, more = rows[:per_page], len(rows) > per_page
        total, counts = await self._plans.count(which, [*dict.fromkeys(row["namespace"] for row in shown)], COUNTED)
        pagination = Pagination(per_page, more, next_cursor=cursor_after_template(shown[-1]) if more else None)
        if after is None:
            pages = -(-total // per_page)
            pagination = replace(pagination, page=page, total_count=total, total_pages=pages, has_previous=page > 0)
        summaries = [TemplateSummary(**{key: row[key] for key in LISTED}, step_count=row["steps"]) for row in shown]
        return TemplatePage(
            summaries, [NamespaceSummary(name, None, number) for name, number in counts.items()], total, pagination
        )

    async def detail(self, namespace: str, name: str, version: str) -> TemplateDetail:
        """Return one template with its steps and its compiled form. Raises `TemplateNotFound`."""
        plan = (await self._plans.find(namespace, name, version)).plan
        return template_detail(plan, json.loads(plan.to_json()))

    async def validation(self, namespace: str, name: str, version: str) -> TemplateValidation:
        """Return whether live workers that serve the namespace have every handler. Raises `TemplateNotFound`."""
        plan = (await self._plans.find(namespace, name, version)).plan
        processes = [process for process in await self._workers.list() if process.state == "live"]
        served = {name for process in processes if namespace in process.namespaces for name in process.callables}
        required = sorted({step.handler.callable for step in plan.steps if step.has_handler})
        errors = [
            f"no live worker of {namespace} has the handler {handler}" for handler in required if handler not in served
        ]
        return TemplateValidation(not errors, errors, [namespace], required)
