"""Runs steps that arrive as events, for programs with their own source of steps and for tests of handlers.

Steps of this process's worker are ignored: the worker runs them itself.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any

from tasker.errors import StepExecutionError
from tasker.handlers.again import AgainIn, AgainWhen
from tasker.handlers.claims import Failure
from tasker.handlers.normalize import failure_from_exception, failure_from_result, to_result
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.registry.resolver import HandlerDefinition
from tasker.handlers.results import StepHandlerResult
from tasker.handlers.step_handler import CheckpointYield
from tasker.template.plan import TemplateId
from tasker_core.event_bridge import AnnouncedStep, EventBridge, EventNames, checkpoint_event
from tasker_core.types.context import EventContext
from tasker_core.types.results import StepError, StepExecutionResult
from tasker_core.types.step_event import FfiStepEvent

__all__ = ["StepExecutionError", "StepExecutionSubscriber"]


class StepExecutionSubscriber:
    """Runs the handler on `STEP_EXECUTION_RECEIVED` and publishes its result as `STEP_COMPLETION_SENT`."""

    def __init__(self, event_bridge: EventBridge, handler_registry: HandlerRegistry, worker_id: str) -> None:
        self._bridge = event_bridge
        self._registry = handler_registry
        self._worker_id = worker_id
        self._active = False

    def start(self) -> None:
        """Start to accept events."""
        if not self._active:
            self._active = True
            self._bridge.subscribe(EventNames.STEP_EXECUTION_RECEIVED, self._on_event)

    def stop(self) -> None:
        """Stop accepting events."""
        self._active = False
        self._bridge.unsubscribe(EventNames.STEP_EXECUTION_RECEIVED, self._on_event)

    @property
    def is_active(self) -> bool:
        """True between `start` and `stop`."""
        return self._active

    @property
    def worker_id(self) -> str:
        """Id of the worker in the published results."""
        return self._worker_id

    def _on_event(self, event: FfiStepEvent) -> None:
        if isinstance(event, AnnouncedStep):
            return
        started = time.monotonic()
        result: StepHandlerResult | Failure
        try:
            result = self._run(event)
        except CheckpointYield as stop:
            self._bridge.publish(EventNames.STEP_CHECKPOINT_YIELD, checkpoint_event(event.step_uuid, stop))
            return
        except AgainIn as stop:  # the reader of the event calls the step again
            result = Failure(str(stop), "again_in", True, retry_after=stop.seconds)
        except AgainWhen as stop:  # whoever sends steps as events knows of no waits
            message = f"{stop}: only a worker of Tasker can wait for it"
            result = Failure(message, "again_when_unsupported", False)
        except Exception as error:
            self._bridge.publish(EventNames.HANDLER_ERROR, event, error)
            result = failure_from_exception(error)
        duration = int((time.monotonic() - started) * 1000)
        self._bridge.publish(EventNames.STEP_COMPLETION_SENT, self._report(event, result, duration))

    def _run(self, event: FfiStepEvent) -> StepHandlerResult:
        definition = _definition(event)
        handler = self._registry.resolved(definition, template=_template(event))
        returned = handler.call(EventContext.from_ffi_event(event, definition.callable))
        return to_result(asyncio.run(_finish(returned)) if inspect.isawaitable(returned) else returned, handler.name)

    def _report(self, event: FfiStepEvent, outcome: StepHandlerResult | Failure, duration: int) -> StepExecutionResult:
        who: dict[str, Any] = {
            "step_uuid": event.step_uuid,
            "task_uuid": event.task_uuid,
            "execution_time_ms": duration,
            "worker_id": self._worker_id,
            "correlation_id": event.correlation_id,
        }
        if isinstance(outcome, StepHandlerResult) and outcome.is_success:
            return StepExecutionResult.success_result(result=outcome.result or {}, metadata=outcome.metadata, **who)
        failure = outcome if isinstance(outcome, Failure) else failure_from_result(outcome)
        return StepExecutionResult.failure_result(error=StepError.of(failure), **who)


async def _finish(awaitable: Any) -> Any:
    return await awaitable


def _definition(event: FfiStepEvent) -> HandlerDefinition:
    step = event.task_sequence_step.get("step_definition") or {}
    return HandlerDefinition.from_dict(step.get("handler"))


def _template(event: FfiStepEvent) -> TemplateId | None:
    task = event.task_sequence_step.get("task") or {}
    names = [task.get(key) for key in ("namespace_name", "task_name", "task_version")]
    return TemplateId(*map(str, names)) if all(names) else None
