"""Schemas of templates."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tasker.server.shapes.tasks import PaginationInfo
from tasker.server.shapes.texts import Name


class TemplateSummary(BaseModel):
    """Registered template."""

    namespace: str
    name: str
    version: str
    description: str | None = None
    updated_at: datetime
    step_count: int


class NamespaceSummary(BaseModel):
    """Number of templates of a namespace, counted to 10,000."""

    name: str
    description: str | None = None
    template_count: int


class TemplateListResponse(BaseModel):
    """A page of the registered templates, in each version, with the namespaces of these templates."""

    templates: list[TemplateSummary]
    namespaces: list[NamespaceSummary]
    total_count: int
    pagination: PaginationInfo


class StepDefinition(BaseModel):
    """Step of a template."""

    name: str
    description: str | None = None
    default_retryable: bool
    default_max_attempts: int
    type: str
    handler: str
    depends_on: list[str]


class TemplateDetail(BaseModel):
    """Template with its steps in topological order and its compiled form (`configuration`)."""

    namespace: str
    name: str
    version: str
    description: str | None = None
    steps: list[StepDefinition]
    configuration: dict[str, Any]


class TemplateText(BaseModel):
    """Templates to register, as YAML."""

    model_config = ConfigDict(extra="forbid")

    yaml: str = Field(max_length=1_000_000, description="One template, or several documents.")
    environment: Name | None = Field(None, description="Apply the overrides of this environment.")
    force: bool = Field(False, description="Replace a version that has other content; tasks in flight keep theirs.")
    validate_only: bool = Field(False, description="Say what is wrong, and register nothing.")


class Diagnosis(BaseModel):
    """Problem in the text of a template."""

    model_config = ConfigDict(extra="allow")

    code: str
    severity: str
    message: str


class RegisteredTemplate(BaseModel):
    """Registered template, or, with `validate_only`, one that could be registered."""

    namespace: str
    name: str
    version: str
    step_count: int


class RegistrationResponse(BaseModel):
    """Registered templates and warnings."""

    registered: bool
    templates: list[RegisteredTemplate]
    diagnostics: list[Diagnosis]


class TemplateValidationResponse(BaseModel):
    """Result of checking that live workers have every handler of a template."""

    valid: bool
    errors: list[str]
    required_capabilities: list[str]
    step_handlers: list[str]


GraphFormat = Literal["json", "mermaid", "dot", "text"]


class GraphNode(BaseModel):
    """Step of the graph; `level` is its longest distance from a root, `static` is false if only an expansion creates
    it."""

    name: str
    type: str
    level: int
    static: bool


class GraphEdge(BaseModel):
    """Dependency of `to_step` on `from_step`."""

    from_step: str
    to_step: str


class TemplateGraph(BaseModel):
    """Steps of a template and the dependencies between them."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
