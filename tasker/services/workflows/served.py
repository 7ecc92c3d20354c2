"""Templates that a worker registers, the handlers it loads for them, and the namespaces it serves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from tasker.dataclasses import dataclass
from tasker.engine.plans import PlanStore
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.queues import check_namespace
from tasker.services.workflows.files import load_workflows
from tasker.services.workflows.handlers import Workflow, load_neighbouring_handlers, require_handlers
from tasker.services.workflows.registration import register_workflow
from tasker.services.workflows.template_search import installed_templates, search
from tasker.template.plan import Plan
from tasker.template.plugin_rules import TemplateRules


@dataclass(frozen=True, slots=True)
class ServedTemplates:
    """Namespaces and templates served by a process."""

    namespaces: list[str]
    """Sorted namespaces."""
    plans: list[Plan]
    """Templates that were found and registered; the namespaces may have others."""


class DefaultServing(Protocol):
    """Configured defaults, used if no workflow or namespace is named."""

    @property
    def namespaces(self) -> Sequence[str]:
        """Served namespaces; empty means those of the templates."""
        ...

    @property
    def search_paths(self) -> Sequence[str]:
        """Patterns of template files."""
        ...

    @property
    def environment(self) -> str | None:
        """Environment whose overrides the templates get."""
        ...


async def register_served(
    configuration: DefaultServing,
    registry: HandlerRegistry,
    plans: PlanStore,
    *,
    workflows: Sequence[Path] = (),
    namespaces: Sequence[str] = (),
    force: bool = False,
    rules: TemplateRules = (),
) -> ServedTemplates:
    """Register the templates of `workflows`, load the handlers beside them, and return what to serve.

    Where no workflow is named, the templates are those of installed packages (`tasker.templates`) and those that the
    configuration's search paths find: of the namespaces
    that are named here or by the configuration, else all of them. `rules` are those of plugins. Raises `UsageError`
    when there is nothing to serve, `InvalidQueueName` for a namespace that can have no queue, `TemplateError`
    and `HandlerNotFound`.
    """
    requested = {*namespaces} or (set() if workflows else {*configuration.namespaces})
    for namespace in sorted(requested):
        check_namespace(namespace)
    only = set() if workflows else requested
    paths = workflows or [*search(configuration.search_paths), *installed_templates()]
    compiled = [load_workflows(path, configuration.environment, rules) for path in paths]
    chosen = [each for workflows_of_path in compiled for each in _chosen(workflows_of_path, registry, only)]
    served_plans = [await register_workflow(plans, workflow, force=force) for workflow in chosen]
    found_in = requested | {plan.namespace for plan in served_plans}
    if not found_in:
        raise UsageError(
            "no templates to serve: common.task_templates.search_paths matches none "
            f"({', '.join(configuration.search_paths)})",
            hint="name workflows (tasker worker workflows/orders) or --namespace NAME",
        )
    return ServedTemplates(sorted(found_in), served_plans)


def _chosen(compiled: Sequence[Workflow], registry: HandlerRegistry, only: Collection[str]) -> list[Workflow]:
    """Return the workflows of a path, limited to the namespaces `only` if any, after checking all their handlers."""
    selected = [workflow for workflow in compiled if not only or workflow.plan.namespace in only]
    load_neighbouring_handlers(registry, selected)
    for workflow in selected:
        require_handlers(registry, workflow.plan, workflow.lines)
    return selected
