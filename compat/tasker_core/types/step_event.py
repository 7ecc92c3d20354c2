"""Event form of a step: one nested mapping with task, step, dependency results and definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from tasker.handlers.claims import Claim
from tasker.handlers.copies import deep_copy
from tasker.handlers.results import Model
from tasker.template.plan import StepPlan


class FfiStepEvent(Model):
    """Step that is ready for its handler, immutable; `task_sequence_step` holds all its data."""

    model_config = ConfigDict(frozen=True)

    event_id: str
    task_uuid: str
    step_uuid: str
    correlation_id: str
    task_correlation_id: str | None = None
    parent_correlation_id: str | None = None
    task_sequence_step: dict[str, Any]
    trace_id: str | None = None
    span_id: str | None = None


def event_for(
    claim: Claim,
    template: tuple[str, str, str],
    step: StepPlan,
    input_data: Mapping[str, Any],
    dependency_results: Mapping[str, Any],
    handler_inputs: Mapping[str, Any] | None = None,
) -> FfiStepEvent:
    """Return the event of a claimed step; `template` is (namespace, name, version).

    `handler_inputs` are the evaluated `inputs` of a step that has some.
    """
    return FfiStepEvent(
        event_id=f"{claim.step_uuid}:{claim.token}",
        task_uuid=claim.task_uuid,
        step_uuid=claim.step_uuid,
        correlation_id=claim.correlation_id,
        task_correlation_id=claim.correlation_id,
        task_sequence_step={
            "task": _task(claim, template, input_data),
            "workflow_step": _workflow_step(claim, step) | _handler_inputs(handler_inputs),
            "dependency_results": {name: {"result": value} for name, value in dependency_results.items()},
            "step_definition": _definition(step),
        },
    )


def _task(claim: Claim, template: tuple[str, str, str], input_data: Mapping[str, Any]) -> dict[str, Any]:
    namespace, name, version = template
    return {
        "task_uuid": claim.task_uuid,
        "context": dict(input_data),
        "namespace_name": namespace,
        "task_name": name,
        "task_version": version,
        "correlation_id": claim.correlation_id,
    }


def _workflow_step(claim: Claim, step: StepPlan) -> dict[str, Any]:
    return {
        "workflow_step_uuid": claim.step_uuid,
        "task_uuid": claim.task_uuid,
        "name": claim.name,
        "retryable": step.retry.retryable,
        "max_attempts": claim.max_attempts,
        "in_process": True,
        "processed": False,
        "attempts": claim.attempt - 1,
        "inputs": dict(claim.inputs or {}),
        "results": {},
        "checkpoint": claim.checkpoint_data,
    }


def _handler_inputs(inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if inputs is None else {"handler_inputs": dict(inputs)}


def _definition(step: StepPlan) -> dict[str, Any]:
    handler, retry = step.handler, step.retry
    return {
        "name": step.name,
        "description": step.description or "",
        "handler": {
            "callable": handler.callable,
            "handler_method": handler.method,
            "resolver": handler.resolver,
            "initialization": deep_copy(dict(handler.initialization)),
        },
        "dependencies": list(step.depends_on),
        "retry": {
            "retryable": retry.retryable,
            "max_attempts": retry.max_attempts,
            "backoff": retry.backoff,
            "backoff_base_ms": retry.backoff_base_ms,
            "max_backoff_ms": retry.max_backoff_ms,
        },
        "timeout_seconds": step.timeout_seconds,
        "publishes_events": [event.get("name") for event in step.publishes_events],
    }


def task_fields(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the task of an event, whose fields may be nested under the key `task`."""
    task: Mapping[str, Any] = data.get("task") or {}
    inner = task.get("task")
    return {**task, **inner} if isinstance(inner, Mapping) else task
