"""Handlers: classes, mixins and decorated functions."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from tasker.lazy import names_of

if TYPE_CHECKING:
    from tasker.handlers.again import AgainIn, AgainWhen, again_in, again_when
    from tasker.handlers.api_handler import APIHandler, ApiHandler, ApiStepHandler
    from tasker.handlers.batch_arithmetic import Batches
    from tasker.handlers.builtin import BuiltinHandler
    from tasker.handlers.decisions import BatchConfig, Decision, DecisionHandler, DecisionMixin
    from tasker.handlers.decorators import (
        FunctionalHandler,
        api_handler,
        batch_aggregator,
        batch_analyzer,
        batch_worker,
        decision_handler,
        depends_on,
        inputs,
        step_handler,
        uses,
    )
    from tasker.handlers.http.response import APIMixin, ApiResponse
    from tasker.handlers.step_handler import BaseStepHandler, CheckpointYield, StepHandler, checkpoint_yield
    from tasker.template.builtin import BuiltinStep

__all__ = [
    "APIHandler",
    "APIMixin",
    "AgainIn",
    "AgainWhen",
    "ApiHandler",
    "ApiResponse",
    "ApiStepHandler",
    "BaseStepHandler",
    "BatchConfig",
    "Batches",
    "BuiltinHandler",
    "BuiltinStep",
    "CheckpointYield",
    "Decision",
    "DecisionHandler",
    "DecisionMixin",
    "FunctionalHandler",
    "StepHandler",
    "again_in",
    "again_when",
    "api_handler",
    "batch_aggregator",
    "batch_analyzer",
    "batch_worker",
    "checkpoint_yield",
    "decision_handler",
    "depends_on",
    "inputs",
    "step_handler",
    "uses",
]

__getattr__ = names_of(
    __name__,
    {
        "tasker.handlers.api_handler": "APIHandler ApiHandler ApiStepHandler",
        "tasker.handlers.again": "AgainIn AgainWhen again_in again_when",
        "tasker.handlers.step_handler": "BaseStepHandler StepHandler CheckpointYield checkpoint_yield",
        "tasker.handlers.decisions": "DecisionHandler BatchConfig Decision DecisionMixin",
        "tasker.handlers.batch_arithmetic": "Batches",
        "tasker.handlers.builtin": "BuiltinHandler",
        "tasker.template.builtin": "BuiltinStep",
        "tasker.handlers.decorators": (
            "FunctionalHandler api_handler batch_aggregator batch_analyzer batch_worker "
            "decision_handler depends_on inputs step_handler uses"
        ),
        "tasker.handlers.http.response": "APIMixin ApiResponse",
    },
)


class _Package(ModuleType):
    """The type of this package: calling it raises an error that explains how to import the decorator `step_handler`."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "step_handler is a package here, not the decorator: write `from tasker.step_handler import step_handler`"
        )


sys.modules[__name__].__class__ = _Package
