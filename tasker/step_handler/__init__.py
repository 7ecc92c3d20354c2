"""Handlers: classes, mixins, decorated functions."""

from __future__ import annotations

from tasker.step_handler.api import APIHandler, ApiHandler, ApiStepHandler
from tasker.step_handler.base import BaseStepHandler, StepHandler
from tasker.step_handler.checkpoint import CheckpointYield, checkpoint_yield
from tasker.step_handler.decision import DecisionHandler
from tasker.step_handler.functional import (
    BatchConfig,
    Batches,
    Decision,
    FunctionalHandler,
    api_handler,
    batch_aggregator,
    batch_analyzer,
    batch_worker,
    decision_handler,
    depends_on,
    inputs,
    step_handler,
)
from tasker.step_handler.mixins import APIMixin, ApiResponse, DecisionMixin

__all__ = [
    "APIHandler",
    "APIMixin",
    "ApiHandler",
    "ApiResponse",
    "ApiStepHandler",
    "BaseStepHandler",
    "BatchConfig",
    "Batches",
    "CheckpointYield",
    "Decision",
    "DecisionHandler",
    "DecisionMixin",
    "FunctionalHandler",
    "StepHandler",
    "api_handler",
    "batch_aggregator",
    "batch_analyzer",
    "batch_worker",
    "checkpoint_yield",
    "decision_handler",
    "depends_on",
    "inputs",
    "step_handler",
]
