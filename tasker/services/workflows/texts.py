"""Templates given as text: compiled outside of the event loop, and registered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tasker.dataclasses import dataclass
from tasker.engine.plans import PlanStore
from tasker.errors import TemplateError, UsageError
from tasker.services.audit import audited
from tasker.template.diagnostics import Diagnostic
from tasker.template.plan import Plan
from tasker.template.plugin_rules import TemplateRules

if TYPE_CHECKING:
    from tasker.template.compile import Origins

FILE = "request"
"""File name of the text in diagnostics."""


@dataclass(frozen=True, slots=True)
class CompiledTexts:
    """Plans of a text, and warnings."""

    plans: Sequence[Plan]
    diagnostics: Sequence[Diagnostic]
    origins: Sequence[Origins]


class TemplateTexts:
    """Service that compiles and registers template texts."""

    def __init__(self, plans: PlanStore, rules: TemplateRules = ()) -> None:
        self._plans, self._rules = plans, rules

    async def compiled(self, text: str, environment: str | None = None) -> CompiledTexts:
        """Compile the templates of a text in a thread, because a large one would block the event loop.

        Raises `TemplateError` with every problem, `UsageError` for an unknown environment.

        Runs in a thread, because a large text would block the event loop.
        """
        from tasker.services.workflows.files import require_environment
        from tasker.template.compile import compile_text
        from tasker.template.report import render_text

        compiling = partial(compile_text, text, file=FILE, environment=environment, rules=self._rules)
        result = await asyncio.to_thread(compiling)
        if not result.ok:
            raise TemplateError(render_text(result.errors, result.sources), diagnostics=result.diagnostics)
        require_environment(result, environment)
        if not result.plans:
            raise UsageError("the text contains no template", hint="a template has at least name and steps")
        return CompiledTexts(result.plans, result.diagnostics, result.origins)

    @audited("App.template_texts.register", "_plans._connection", several=True)
    async def register(self, text: str, environment: str | None = None, *, force: bool = False) -> CompiledTexts:
        """Register every template of a text.

        Raises the errors of `compiled`, and `TemplateError` for a version that has other content, unless `force` is
        set; templates before it in the text stay registered then.
        """
        from tasker.services.workflows.registration import unknown_limits_located

        compiled = await self.compiled(text, environment)
        for plan, origins in zip(compiled.plans, compiled.origins, strict=True):
            with unknown_limits_located(origins, {FILE: text}):
                await self._plans.register(plan, force=force)
        return compiled
