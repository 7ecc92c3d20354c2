"""Handlers: classes, mixins and decorated functions."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from tasker.named import names_of

if TYPE_CHECKING:
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

__getattr__ = names_of(
    __name__,
    {
        "api": "APIHandler ApiHandler ApiStepHandler",
        "base": "BaseStepHandler StepHandler",
        "checkpoint": "CheckpointYield checkpoint_yield",
        "decision": "DecisionHandler",
        "functional": "BatchConfig Batches Decision FunctionalHandler api_handler batch_aggregator "
        "batch_analyzer batch_worker decision_handler depends_on inputs step_handler",
        "mixins": "APIMixin ApiResponse DecisionMixin",
    },
)


class _Package(ModuleType):
    """The type of this package: calling it raises an error that explains how to import the decorator `step_handler`."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "step_handler is a package here, not the decorator: write `from tasker.step_handler import step_handler`"
        )


sys.modules[__name__].__class__ = _Package
