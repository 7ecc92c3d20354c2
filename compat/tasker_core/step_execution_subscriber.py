"""Subscriber that runs steps received as events: for applications with their own source of steps, and for tests."""

from __future__ import annotations

from tasker.errors.handler import StepExecutionError
from tasker.step_execution_subscriber import StepExecutionSubscriber as EngineSubscriber
from tasker_core.event_bridge import EventBridge
from tasker_core.handler import HandlerRegistry

__all__ = ["StepExecutionError", "StepExecutionSubscriber"]


class StepExecutionSubscriber(EngineSubscriber):
    """Subscriber to `STEP_EXECUTION_RECEIVED` that runs the handler and publishes `STEP_COMPLETION_SENT`.

    It ignores the steps of this process's worker.
    """

    def __init__(self, event_bridge: EventBridge, handler_registry: HandlerRegistry, worker_id: str) -> None:
        super().__init__(event_bridge, handler_registry, worker_id)  # type: ignore[arg-type]
