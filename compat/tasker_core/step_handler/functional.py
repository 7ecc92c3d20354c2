"""Functions as handlers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tasker.handlers.binding import declare, declared_dependencies, declared_inputs
from tasker.handlers.decisions import BatchConfig
from tasker.handlers.decorators import FunctionalHandler, HandlerDecorator
from tasker_core.step_handler.function_handlers import (
    ApiFunction,
    BatchAnalyzerFunction,
    BatchWorkerFunction,
    DecisionFunction,
    FunctionHandler,
    handler_class,
)
from tasker_core.types import DecisionPointOutcome

__all__ = [
    "BatchConfig",
    "Decision",
    "FunctionalHandler",
    "HandlerDecorator",
    "api_handler",
    "batch_analyzer",
    "batch_worker",
    "decision_handler",
    "depends_on",
    "inputs",
    "step_handler",
]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Decision:
    """Result of a decision function."""

    outcome: DecisionPointOutcome

    @staticmethod
    def route(steps: list[str], **routing_context: Any) -> Decision:
        """Create these steps of the template."""
        return Decision(DecisionPointOutcome.create_steps(steps, routing_context=routing_context))

    @staticmethod
    def skip(reason: str, **routing_context: Any) -> Decision:
        """Create no steps, for this reason."""
        return Decision(DecisionPointOutcome.no_branches(reason, routing_context))


def step_handler(name: str, version: str = "1.0.0") -> HandlerDecorator:
    """Register the function as the handler `name`; its returned value or exception becomes the step's result."""
    return _decorator(FunctionHandler, name, version)


def decision_handler(name: str, version: str = "1.0.0") -> HandlerDecorator:
    """Register a decision function: it returns a `Decision`, or the result of any other handler."""
    return _decorator(DecisionFunction, name, version)


def batch_analyzer(name: str, worker_template: str, version: str = "1.0.0") -> HandlerDecorator:
    """Register a function that returns a `BatchConfig`; `worker_template` is the template's batch_worker step."""
    return _decorator(BatchAnalyzerFunction, name, version, worker_template=worker_template)


def batch_worker(name: str, version: str = "1.0.0") -> HandlerDecorator:
    """Register a function that processes one batch, passed as `batch_context`; None if the step has none."""
    return _decorator(BatchWorkerFunction, name, version)


def api_handler(
    name: str,
    base_url: str,
    version: str = "1.0.0",
    timeout: float = 30.0,
    default_headers: dict[str, str] | None = None,
) -> HandlerDecorator:
    """Register a function that calls an API through its parameter `api`; `timeout` is in seconds."""
    settings = {"base_url": base_url, "default_timeout": timeout, "default_headers": dict(default_headers or {})}
    return _decorator(ApiFunction, name, version, **settings)


def depends_on(**deps: str | tuple[str, type]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Fill parameters with results of steps above: `cart="validate_cart"`, or `cart=("validate_cart", Cart)`."""
    dependencies = {name: (dep, None) if isinstance(dep, str) else tuple(dep) for name, dep in deps.items()}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        declare(function, "depends_on", {**declared_dependencies(function), **dependencies})
        return function

    return decorate


def inputs(*keys_or_model: str | type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Fill parameters with fields of the task's context; `inputs(Model)` fills one parameter `inputs`."""
    keys = tuple(item for item in keys_or_model if isinstance(item, str))
    models = [item for item in keys_or_model if isinstance(item, type)]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        earlier, _ = declared_inputs(function)
        declare(function, "input_keys", (*earlier, *keys))
        if models:
            declare(function, "input_model", models[0])
        return function

    return decorate


def _decorator(base: type[FunctionHandler], name: str, version: str, **attributes: Any) -> HandlerDecorator:
    def decorate(function: F, /) -> F:
        function.__dict__["_handler_class"] = handler_class(base, function, name, version, **attributes)
        return function

    return decorate
