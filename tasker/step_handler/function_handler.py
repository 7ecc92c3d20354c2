"""The handler classes behind decorated functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, TypeAdapter

from tasker.batch_processing.aggregation import BatchAggregationScenario, Batches
from tasker.batch_processing.cursors import ranges_by_size
from tasker.batch_processing.results import analysis_result, no_op_result, worker_result
from tasker.errors import PermanentError
from tasker.step_handler.base import StepHandler
from tasker.step_handler.binding import Reader, bind, validated
from tasker.step_handler.decisions import BatchConfig, Decision
from tasker.step_handler.mixins.api import APIMixin
from tasker.step_handler.mixins.decision import decision_result
from tasker.step_handler.outcome import INVALID_RESULT, result_from_exception, to_result
from tasker.types import (
    BatchAnalyzerOutcome,
    BatchWorkerContext,
    BatchWorkerOutcome,
    CursorConfig,
    DecisionPointOutcome,
    StepContext,
    StepHandlerCallResult,
    StepHandlerResult,
)


class FunctionHandler(StepHandler):
    """Calls a function with its arguments by name and turns what it returns into a result."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self) -> None:
        super().__init__()
        self.arguments = bind(self.function, self.readers())

    def readers(self) -> Mapping[str, Reader]:
        """Parameters that this kind of handler fills."""
        return {}

    def convert(self, value: Any) -> StepHandlerResult:
        """A result passes, a mapping is one, a model is dumped, None is empty, the rest is `{"result": value}`."""
        if isinstance(value, (StepHandlerResult, StepHandlerCallResult)):
            return to_result(value)
        if isinstance(value, BaseModel):
            return StepHandlerResult.success(value.model_dump(mode="json"))
        if value is None:
            return StepHandlerResult.success({})
        return StepHandlerResult.success(value if isinstance(value, dict) else {"result": value})

    def shortcut(self, context: StepContext) -> StepHandlerResult | None:
        """A result that makes calling the function unnecessary."""
        return None

    def call(self, context: StepContext) -> Any:
        """Run the function; every exception becomes a failure."""
        try:
            return self.shortcut(context) or self.convert(self.function(**self.arguments(context)))
        except Exception as error:
            return result_from_exception(error)


class AsyncCall(FunctionHandler):
    """The same for an `async def` function."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        """Run the function on the loop; every exception becomes a failure."""
        try:
            return self.shortcut(context) or self.convert(await self.function(**self.arguments(context)))
        except Exception as error:
            return result_from_exception(error)


class DecisionFunction(FunctionHandler):
    """A function that returns a `Decision`."""

    def convert(self, value: Any) -> StepHandlerResult:
        """The decision as a result."""
        if isinstance(value, StepHandlerResult):
            return value
        outcome = value.outcome if isinstance(value, Decision) else value
        if not isinstance(outcome, DecisionPointOutcome):
            raise _unexpected(value, "Decision.route([...]) or Decision.skip(reason)")
        return decision_result(outcome)


class BatchAnalyzerFunction(FunctionHandler):
    """A function that returns a `BatchConfig`."""

    worker_template: ClassVar[str]

    def convert(self, value: Any) -> StepHandlerResult:
        """The cursors as a result."""
        if isinstance(value, StepHandlerResult):
            return value
        if isinstance(value, BatchConfig):
            value = _analysis(value)
        if not isinstance(value, BatchAnalyzerOutcome):
            raise _unexpected(value, "BatchConfig(total_items=..., batch_size=...)")
        data = {**value.batch_metadata, "batch_metadata": value.batch_metadata}
        return analysis_result(self.worker_template, value.cursor_configs, value.total_items, data, None)


class BatchWorkerFunction(FunctionHandler):
    """A function that does one batch; the placeholder of an empty analysis never reaches it (C-77)."""

    def readers(self) -> Mapping[str, Reader]:
        """Fills `batch_context`."""
        return {"batch_context": BatchWorkerContext.from_step_context}

    def shortcut(self, context: StepContext) -> StepHandlerResult | None:
        """The result of the placeholder."""
        batch = BatchWorkerContext.from_step_context(context)
        if batch is None:
            raise PermanentError(
                f"step {context.step_name!r} has no batch inputs", hint="use type batch_worker for it in the template"
            )
        return no_op_result(batch.batch_id) if batch.is_no_op else None

    def convert(self, value: Any) -> StepHandlerResult:
        """A `BatchWorkerOutcome`, or anything that a step's function may return."""
        return worker_result(value, None, None) if isinstance(value, BatchWorkerOutcome) else super().convert(value)


class BatchAggregatorFunction(FunctionHandler):
    """A function that puts the results of batch workers together."""

    analyzer: ClassVar[str]
    worker_template: ClassVar[str]
    model: ClassVar[type | None]

    def readers(self) -> Mapping[str, Reader]:
        """Fills `batches`, each result as the type that was asked for."""
        adapter: TypeAdapter[Any] | None = None if self.model is None else TypeAdapter(self.model)

        def made(name: str, result: dict[str, Any]) -> Any:
            return result if adapter is None else validated(adapter, result, f"result of step {name!r} (for 'batches')")

        def read(context: StepContext) -> Batches[Any]:
            found = BatchAggregationScenario.detect(context.dependency_results, self.analyzer, self.worker_template)
            return Batches.of(found, made)

        return {"batches": read}


class ApiFunction(APIMixin, FunctionHandler):
    """A function that calls an HTTP API through its parameter `api`."""

    def readers(self) -> Mapping[str, Reader]:
        """Fills `api` with this handler, which has the verbs."""
        return {"api": lambda context: self}


def handler_class(
    base: type[FunctionHandler], function: Callable[..., Any], name: str, version: str, **attributes: Any
) -> type[FunctionHandler]:
    """A handler class for the function, named and placed like it."""
    bases = (AsyncCall, base) if inspect.iscoroutinefunction(function) else (base,)
    return class_for(function, bases, handler_name=name, handler_version=version, **attributes)


def class_for(function: Callable[..., Any], bases: tuple[type, ...], **attributes: Any) -> type[Any]:
    """A class with those bases and attributes that has the function, and its name, place and text."""
    body = {
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "__doc__": function.__doc__,
        "function": staticmethod(function),
    }
    return type(function.__name__, bases, body | attributes)


def _analysis(config: BatchConfig) -> BatchAnalyzerOutcome:
    ranges = ranges_by_size(config.total_items, config.batch_size)
    cursors = [CursorConfig(start_cursor=start, end_cursor=end) for start, end in ranges]
    return BatchAnalyzerOutcome(cursor_configs=cursors, total_items=config.total_items, batch_metadata=config.metadata)


def _unexpected(value: Any, wanted: str) -> PermanentError:
    error = PermanentError(f"the function returned {type(value).__name__} ({value!r:.80}), expected {wanted}")
    error.error_type = INVALID_RESULT
    return error
