"""Compiled plans for the targets of submissions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tasker.db.caller_transaction import CallerTransaction
from tasker.engine.plans import PlanStore
from tasker.errors import UsageError
from tasker.errors.remedies import remedy
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.in_transaction import registered_plan
from tasker.services.workflows.files import find_templates, load_workflows
from tasker.services.workflows.handlers import Workflow, load_neighbouring_handlers
from tasker.services.workflows.targets import (
    choose_workflow,
    is_there,
    registered_name,
    unknown_target,
    workflows_started,
)
from tasker.template.plan import Plan
from tasker.template.plugin_rules import TemplateRules

FOR_ENVIRONMENT = "name its file or folder, or register it for that environment: {}"


class CompiledTarget(NamedTuple):
    """Workflows of a path, and the state of its files before they were read."""

    stamps: Mapping[Path, tuple[int, int] | None]
    workflows: Sequence[Workflow]


class TargetPlans:
    """Plans of template files and folders, compiled once per edit, and registered plans.

    Handlers beside a template file are added to `registry` for that template only. `rules` are template rules of
    plugins.
    """

    def __init__(self, registry: HandlerRegistry, plans: PlanStore, rules: TemplateRules = ()) -> None:
        self._registry, self._plans, self._rules = registry, plans, rules
        self._compiled: dict[tuple[str, str | None, bool], CompiledTarget] = {}

    async def find(
        self, target: str | Path | Plan, template: str | None, environment: str | None, default_environment: str | None
    ) -> Plan:
        """Return the plan of a target of `App.submit`; without `environment`, use the default one if the target has it.

        Raises `TemplateError`, and `UsageError` for an environment that no template of the target has, or that is given
        for a compiled plan.
        """
        if isinstance(target, str | Path) and is_there(target):
            workflows = self._of_path(str(target), environment or default_environment, named=environment is not None)
            workflow = choose_workflow(workflows, template, str(target))
            for child in workflows_started(workflow, workflows):
                await self._plans.pinned(child.plan, force=True)
            return workflow.plan
        if environment is not None:
            raise UsageError(
                f"the environment {environment!r} cannot be applied: the template is already compiled",
                hint=remedy(FOR_ENVIRONMENT, "tasker template register", " --env"),
            )
        if isinstance(target, Plan):
            return target
        with unknown_target(str(target)):
            return (await self._plans.find(*registered_name(str(target)))).plan

    def _of_path(self, path: str, environment: str | None, *, named: bool) -> Sequence[Workflow]:
        """Return the workflows of a path, recompiled after an edit; running tasks keep their version."""
        known = self._compiled.get((path, environment, named))
        if known is None or known.stamps != _stamps(known.stamps):
            files = [Path(path), *find_templates(path)]
            known = CompiledTarget(_stamps(files), load_workflows(path, environment, self._rules, named=named))
            load_neighbouring_handlers(self._registry, known.workflows)
            self._compiled[path, environment, named] = known
        return known.workflows


def plan_in(
    transaction: CallerTransaction, target: str | Path | Plan, template: str | None, environment: str | None
) -> Plan:
    """Return the plan of a target of `submit_in`; registered templates are read from the caller's database.

    Files are compiled once per process. Raises `TemplateError`, `UsageError`.
    """
    if isinstance(target, Plan):
        return target
    if is_there(target):
        return choose_workflow(_compiled_once(str(target), environment), template, str(target)).plan
    with unknown_target(str(target)):
        return registered_plan(transaction, *registered_name(str(target)))


@cache
def _compiled_once(path: str, environment: str | None) -> tuple[Workflow, ...]:
    return load_workflows(path, environment)


def _stamps(files: Iterable[Path]) -> dict[Path, tuple[int, int] | None]:
    """Return a stamp per file or folder that changes when it is edited."""
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size)
