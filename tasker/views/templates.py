"""Views of templates: lists, the compiled form, the graph, and the result of a registration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.template.diagnostics import Diagnostic
from tasker.template.plan import Plan
from tasker.views.model import published
from tasker.views.task_lists import Pagination


@dataclass(frozen=True, slots=True)
class TemplateSummary:
    """Registered template."""

    namespace: str
    name: str
    version: str
    description: str | None
    updated_at: datetime
    step_count: int


@dataclass(frozen=True, slots=True)
class NamespaceSummary:
    """Number of templates of a namespace, counted to 10,000."""

    name: str
    description: str | None
    template_count: int


@published("TemplateListResponse")
@dataclass(frozen=True, slots=True)
class TemplatePage:
    """A page of the registered templates, in each version, with the namespaces of these templates."""

    templates: Sequence[TemplateSummary]
    namespaces: Sequence[NamespaceSummary]
    total_count: int
    pagination: Pagination


@dataclass(frozen=True, slots=True)
class StepDefinition:
    """Step of a template."""

    name: str
    description: str | None
    default_retryable: bool
    default_max_attempts: int
    type: str
    handler: str
    depends_on: Sequence[str]


@dataclass(frozen=True, slots=True)
class TemplateDetail:
    """Template with its steps in topological order and its compiled form (`configuration`)."""

    namespace: str
    name: str
    version: str
    description: str | None
    steps: Sequence[StepDefinition]
    configuration: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Step of the graph; `level` is its longest distance from a root, `static` is false if only an expansion creates
    it."""

    name: str
    type: str
    level: int
    static: bool


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """Dependency of `to_step` on `from_step`."""

    from_step: str
    to_step: str


@dataclass(frozen=True, slots=True)
class TemplateGraph:
    """Steps of a template and the dependencies between them."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]


@published("Diagnosis")
@dataclass(frozen=True, slots=True)
class TemplateDiagnostic:
    """Problem in the text of a template."""

    code: str
    severity: str
    message: str
    file: str
    line: int
    column: int
    length: int
    hint: str | None


@dataclass(frozen=True, slots=True)
class RegisteredTemplate:
    """Registered template, or, with `validate_only`, one that could be registered."""

    namespace: str
    name: str
    version: str
    step_count: int


@published("RegistrationResponse")
@dataclass(frozen=True, slots=True)
class Registration:
    """Registered templates and warnings."""

    registered: bool
    templates: Sequence[RegisteredTemplate]
    diagnostics: Sequence[TemplateDiagnostic]


@published("TemplateValidationResponse")
@dataclass(frozen=True, slots=True)
class TemplateValidation:
    """Result of checking that live workers have every handler of a template."""

    valid: bool
    errors: Sequence[str]
    required_capabilities: Sequence[str]
    step_handlers: Sequence[str]


def template_detail(plan: Plan, configuration: Mapping[str, Any]) -> TemplateDetail:
    """Return a template with its steps; `configuration` is its compiled form."""
    steps = [
        StepDefinition(
            name=step.name,
            description=step.description,
            default_retryable=step.retry.max_attempts > 1,
            default_max_attempts=step.retry.max_attempts,
            type=str(step.type),
            handler=step.handler.callable,
            depends_on=[*step.depends_on],
        )
        for step in plan.steps
    ]
    return TemplateDetail(plan.namespace, plan.name, plan.version, plan.description, steps, configuration)


def template_graph(plan: Plan) -> TemplateGraph:
    """Return the steps of a template and the dependencies between them."""
    nodes = [GraphNode(step.name, str(step.type), step.level, step.static) for step in plan.steps]
    edges = [GraphEdge(parent, step.name) for step in plan.steps for parent in step.depends_on]
    return TemplateGraph(nodes, edges)


def registration(plans: Sequence[Plan], diagnostics: Sequence[Diagnostic], *, registered: bool) -> Registration:
    """Return the result of registering or validating a text."""
    templates = [RegisteredTemplate(plan.namespace, plan.name, plan.version, len(plan.steps)) for plan in plans]
    found = [TemplateDiagnostic(**diagnostic.to_dict()) for diagnostic in diagnostics]
    return Registration(registered, templates, found)
