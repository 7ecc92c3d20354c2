"""Task, step, definition and dependency results as objects, built from the event form of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from tasker.settings.queues import HandlerDispatch
from tasker.template.names import MAX_ATTEMPTS

__all__ = [
    "DependencyResultsWrapper",
    "HandlerWrapper",
    "StepDefinitionWrapper",
    "TaskSequenceStepWrapper",
    "TaskWrapper",
    "WorkflowStepWrapper",
]

T = TypeVar("T")


def _known(cls: type[T], data: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the entries of `data` that are fields of the dataclass; null entries are dropped, so defaults apply."""
    names = {item.name for item in fields(cls)}  # type: ignore[arg-type]
    return {key: value for key, value in (data or {}).items() if key in names and value is not None}


@dataclass
class HandlerWrapper:
    """The `handler` of a step definition."""

    callable: str
    initialization: dict[str, Any] = field(default_factory=dict)
    handler_method: str | None = None
    resolver: str | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> HandlerWrapper:
        """Return the handler; the key `method` is accepted for `handler_method`."""
        values = dict(data or {})
        values.setdefault("handler_method", values.get("method"))
        return cls(**{"callable": "", **_known(cls, values)})


@dataclass
class StepDefinitionWrapper:
    """Step of the template; `timeout_seconds` limits one attempt."""

    name: str
    description: str
    handler: HandlerWrapper
    dependencies: list[str] = field(default_factory=list)
    retry: dict[str, Any] = field(default_factory=dict)
    timeout_seconds: int = HandlerDispatch.handler_timeout_ms // 1000
    publishes_events: list[str] = field(default_factory=list)

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> StepDefinitionWrapper:
        """Return the definition, with defaults for missing keys."""
        values = {"name": "", "description": "", **_known(cls, data)}
        return cls(**{**values, "handler": HandlerWrapper.from_dict((data or {}).get("handler"))})


@dataclass
class DependencyResultsWrapper:
    """Results of the steps above, by name and in their envelopes; iterates over the names."""

    _results: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> DependencyResultsWrapper:
        """Create from results in their envelopes."""
        return cls(data or {})

    def get_result(self, step_name: str) -> Any:
        """Return the envelope of a step, or None if it has none."""
        return self._results.get(step_name)

    def get_results(self, step_name: str) -> Any:
        """Return the content of a step's envelope."""
        envelope = self.get_result(step_name)
        return envelope["result"] if isinstance(envelope, dict) and "result" in envelope else envelope

    def get(self, step_name: str, default: Any = None) -> Any:
        """Return the envelope of a step, or `default`."""
        return self._results.get(step_name, default)

    def keys(self) -> list[str]:
        """Return the names of the steps."""
        return list(self._results)

    def __getitem__(self, step_name: str) -> Any:
        return self.get_result(step_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __contains__(self, step_name: object) -> bool:
        return step_name in self._results

    def __len__(self) -> int:
        return len(self._results)


@dataclass
class WorkflowStepWrapper:
    """Step instance of a task."""

    workflow_step_uuid: str
    task_uuid: str
    name: str
    named_step_uuid: str | None = None
    retryable: bool = True
    max_attempts: int = MAX_ATTEMPTS
    in_process: bool = False
    processed: bool = False
    processed_at: datetime | None = None
    attempts: int = 0
    last_attempted_at: datetime | None = None
    backoff_request_seconds: int = 0
    inputs: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> WorkflowStepWrapper:
        """Return the step from plain data; times are not converted."""
        return cls(**{"workflow_step_uuid": "", "task_uuid": "", "name": "", **_known(cls, data)})


@dataclass
class TaskWrapper:
    """Task that a step belongs to."""

    task_uuid: str
    context: dict[str, Any] = field(default_factory=dict)
    namespace_name: str = ""
    task_name: str = ""
    task_version: str = ""
    correlation_id: str | None = None
    parent_correlation_id: str | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> TaskWrapper:
        """Return the task; its fields may be nested under the key `task`."""
        outer = dict(data or {})
        inner = outer.get("task")
        merged = {**outer, **inner} if isinstance(inner, Mapping) else outer
        return cls(**{"task_uuid": "", **_known(cls, merged)})


@dataclass
class TaskSequenceStepWrapper:
    """All data of a step that is ready for its handler."""

    task: TaskWrapper
    workflow_step: WorkflowStepWrapper
    dependency_results: DependencyResultsWrapper
    step_definition: StepDefinitionWrapper

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> TaskSequenceStepWrapper:
        """Return the four parts from the event's mapping."""
        values = data or {}
        return cls(
            task=TaskWrapper.from_dict(values.get("task")),
            workflow_step=WorkflowStepWrapper.from_dict(values.get("workflow_step")),
            dependency_results=DependencyResultsWrapper.from_dict(values.get("dependency_results")),
            step_definition=StepDefinitionWrapper.from_dict(values.get("step_definition")),
        )

    def get_task_field(self, field_name: str) -> Any:
        """Return a field of the task's context, or None."""
        return self.task.context.get(field_name)

    def get_dependency_result(self, step_name: str) -> Any:
        """Return the result of a dependency, or None."""
        return self.dependency_results.get_results(step_name)

    def get_results(self, step_name: str) -> Any:
        """Return the result of a dependency; see `get_dependency_result`."""
        return self.get_dependency_result(step_name)
