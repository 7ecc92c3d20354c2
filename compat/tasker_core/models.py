"""Task, step, definition and dependency results as objects, created from the event form of a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tasker.models as engine
from tasker.models import HandlerWrapper, StepDefinitionWrapper, TaskWrapper

__all__ = [
    "DependencyResultsWrapper",
    "HandlerWrapper",
    "StepDefinitionWrapper",
    "TaskSequenceStepWrapper",
    "TaskWrapper",
    "WorkflowStepWrapper",
]


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


class WorkflowStepWrapper(engine.WorkflowStepWrapper):
    """Step instance of a task; times are not converted."""

    @staticmethod
    def _read(name: str, value: Any) -> Any:
        return value


@dataclass
class TaskSequenceStepWrapper(engine.TaskSequenceStepWrapper):
    """All data of a step that is ready for its handler."""

    step_class = WorkflowStepWrapper
    results_class = DependencyResultsWrapper

    workflow_step: WorkflowStepWrapper
    dependency_results: DependencyResultsWrapper  # type: ignore[assignment]
