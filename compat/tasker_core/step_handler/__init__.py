"""Handlers: classes, mixins, decorated functions."""

from __future__ import annotations

from tasker_core.step_handler import mixins
from tasker_core.step_handler.api import ApiHandler, ApiResponse
from tasker_core.step_handler.base import StepHandler
from tasker_core.step_handler.decision import DecisionHandler
from tasker_core.step_handler.functional import (
    BatchConfig,
    Decision,
    FunctionalHandler,
    HandlerDecorator,
    api_handler,
    batch_analyzer,
    batch_worker,
    decision_handler,
    depends_on,
    inputs,
    step_handler,
)

__all__ = [
    "ApiHandler",
    "ApiResponse",
    "BatchConfig",
    "Decision",
    "DecisionHandler",
    "FunctionalHandler",
    "HandlerDecorator",
    "StepHandler",
    "api_handler",
    "batch_analyzer",
    "batch_worker",
    "decision_handler",
    "depends_on",
    "inputs",
    "mixins",
    "step_handler",
]
