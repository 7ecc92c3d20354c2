"""Handler classes of decorated functions."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tasker.errors import PermanentError, RetryableError, TaskerError
from tasker.handlers.binding import CONTEXT_NAMES, bind, declared_dependencies, declared_inputs
from tasker.handlers.decisions import BatchConfig
from tasker.handlers.function_handlers import class_for
from tasker.handlers.handler_roles import HandlerRole
from tasker_core.batch_processing import Batchable
from tasker_core.step_handler.base import StepHandler
from tasker_core.step_handler.mixins import APIMixin, DecisionMixin
from tasker_core.types import DecisionType, ErrorType, StepContext, StepHandlerResult


class FunctionHandler(StepHandler):
    """Handler that calls a function with its arguments by name and converts the returned value to a result."""

    function: ClassVar[Callable[..., Any]]
    fills: ClassVar[tuple[str, ...]] = ()
    """Parameters that this kind of handler fills itself."""

    def __init__(self) -> None:
        super().__init__()
        bind(self.function, dict.fromkeys(self.fills, lambda context: None))  # reports parameters without a source

    def given(self, context: StepContext) -> Mapping[str, Any]:
        """Return the values of those parameters."""
        return {}

    def converted(self, value: Any) -> StepHandlerResult:
        """Convert the returned value to a result."""
        return plain_result(value)

    def call(self, context: StepContext) -> Any:
        """Run the function; every exception becomes a failure."""
        try:
            return self.converted(self.function(**self.arguments(context)))
        except Exception as error:
            return failure_of(error)

    def arguments(self, context: StepContext) -> dict[str, Any]:
        """Return the declared arguments, those of this kind of handler, and the context if the function has a parameter
        for it."""
        parameters = inspect.signature(self.function).parameters
        context_names = [name for name in CONTEXT_NAMES if name in parameters]
        return {**_declared(self.function, context), **dict.fromkeys(context_names[:1], context), **self.given(context)}


class AsyncCall(FunctionHandler):
    """`FunctionHandler` for an `async def` function."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Run the function on the event loop; every exception becomes a failure."""
        try:
            return self.converted(await self.function(**self.arguments(context)))
        except Exception as error:
            return failure_of(error)


class DecisionFunction(DecisionMixin, FunctionHandler):
    """Handler of a function that returns a `Decision`."""

    handler_role = HandlerRole.DECISION

    def converted(self, value: Any) -> StepHandlerResult:
        """Convert the decision to a result."""
        from tasker_core.step_handler.functional import Decision

        if not isinstance(value, Decision):
            return plain_result(value)
        outcome = value.outcome
        if outcome.decision_type is DecisionType.CREATE_STEPS:
            return self.decision_success(outcome.next_step_names, outcome.routing_context)
        return self.skip_branches(outcome.reason or "No branches", outcome.routing_context)


class BatchAnalyzerFunction(Batchable, FunctionHandler):
    """Handler of a function that returns a `BatchConfig`."""

    handler_role = HandlerRole.ANALYZER
    worker_template: ClassVar[str]

    def converted(self, value: Any) -> StepHandlerResult:
        """Convert the cursors to a result."""
        if not isinstance(value, BatchConfig):
            return plain_result(value)
        outcome = self.create_batch_outcome(value.total_items, value.batch_size, batch_metadata=value.metadata)
        return self.batch_analyzer_success(outcome, worker_template_name=self.worker_template)


class BatchWorkerFunction(Batchable, FunctionHandler):
    """Handler of a function that processes one batch."""

    fills = ("batch_context",)

    def given(self, context: StepContext) -> Mapping[str, Any]:
        """Return the batch."""
        return {"batch_context": self.get_batch_context(context)}


class ApiFunction(APIMixin, FunctionHandler):
    """Handler of a function that calls an HTTP API through its parameter `api`."""

    fills = ("api",)

    def given(self, context: StepContext) -> Mapping[str, Any]:
        """Return this handler, which has the methods for requests."""
        return {"api": self}


def handler_class(
    base: type[FunctionHandler], function: Callable[..., Any], name: str, version: str, **attributes: Any
) -> type[FunctionHandler]:
    """Create a handler class for the function, with its name and module."""
    bases = (AsyncCall, base) if inspect.iscoroutinefunction(function) else (base,)
    return class_for(function, bases, handler_name=name, handler_version=version, **attributes)


def _declared(function: Callable[..., Any], context: StepContext) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for parameter, (step, model) in declared_dependencies(function).items():
        value = context.get_dependency_result(step)
        arguments[parameter] = model.model_validate(value) if _fits(model, value) else value  # type: ignore[union-attr]
    keys, input_model = declared_inputs(function)
    if input_model is not None:
        return {**arguments, "inputs": input_model(**_known_fields(input_model, context))}
    return {**arguments, **{key: context.get_input(key) for key in keys}}


def _fits(model: type | None, value: Any) -> bool:
    return model is not None and isinstance(value, dict)


def _known_fields(model: Any, context: StepContext) -> dict[str, Any]:
    """Return the model's fields; a required one is None if the task does not have it."""
    known = context.input_data
    fields = model.model_fields.items()
    return {name: known.get(name) for name, field in fields if name in known or field.is_required()}


def plain_result(value: Any) -> StepHandlerResult:
    """Convert a returned value: a result is kept, a mapping is the result, a model is dumped, None is empty.

    Any other value is `{"result": value}`.
    """
    if isinstance(value, StepHandlerResult):
        return value
    if isinstance(value, dict):
        return StepHandlerResult.success(value)
    if hasattr(value, "model_dump"):
        return StepHandlerResult.success(value.model_dump(mode="json"))
    return StepHandlerResult.success({} if value is None else {"result": value})


def failure_of(error: Exception) -> StepHandlerResult:
    """Convert an exception to a failure: `PermanentError` ends the step, all others may be retried."""
    if not isinstance(error, TaskerError):
        seen = {"exception_type": type(error).__name__, "traceback": traceback.format_exc()}
        return StepHandlerResult.failure(str(error), ErrorType.HANDLER_ERROR, True, seen)
    metadata: dict[str, Any] = {**error.context, **error.metadata}
    if error.retry_after is not None:
        metadata["retry_after"] = error.retry_after
    return StepHandlerResult.failure(str(error), _error_type(error), error.retryable, metadata, error.error_code)


def _error_type(error: TaskerError) -> ErrorType:
    if isinstance(error, PermanentError):
        return ErrorType.PERMANENT_ERROR
    return ErrorType.RETRYABLE_ERROR if isinstance(error, RetryableError) else ErrorType.HANDLER_ERROR
