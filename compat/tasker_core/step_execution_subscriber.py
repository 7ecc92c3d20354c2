"""Runs steps that arrive as events: for programs with their own source of steps, and for tests of handlers."""

from __future__ import annotations

from tasker.step_execution_subscriber import StepExecutionError
from tasker.step_execution_subscriber import StepExecutionSubscriber as EngineSubscriber
from tasker_core.event_bridge import EventBridge
from tasker_core.handler import HandlerRegistry

__all__ = ["StepExecutionError", "StepExecutionSubscriber"]


class StepExecutionSubscriber(EngineSubscriber):
    """Takes `STEP_EXECUTION_RECEIVED`, runs the handler, publishes `STEP_COMPLETION_SENT` with the result.

    The steps of this process's worker are left to it.
    """

    def __init__(self, event_bridge: EventBridge, handler_registry: HandlerRegistry, worker_id: str) -> None:
        super().__init__(event_bridge, handler_registry, worker_id)  # type: ignore[arg-type]
