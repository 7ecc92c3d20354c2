"""Functions as handlers.

A function stays an ordinary function, so a test calls it with plain values. Sync and `async def` both work.

    @step_handler("charge")
    @depends_on(cart="validate_cart")
    @inputs("card")
    def charge(cart, card):
        return {"charged": cart["total"]}
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from tasker.errors import UsageError
from tasker.handlers.binding import declare
from tasker.handlers.function_handlers import FunctionHandler, handler_class
from tasker.handlers.results import described
from tasker.handlers.step_handler import StepHandler
from tasker.template.effects import EFFECTS, TRANSACTIONAL

if TYPE_CHECKING:
    from tasker.handlers.batch_arithmetic import Batches
    from tasker.handlers.decisions import BatchConfig, Decision

__all__ = [
    "BatchConfig",
    "Batches",
    "Decision",
    "FunctionalHandler",
    "HandlerDecorator",
    "api_handler",
    "batch_aggregator",
    "batch_analyzer",
    "batch_worker",
    "decision_handler",
    "depends_on",
    "inputs",
    "step_handler",
]

_ELSEWHERE = {
    "BatchConfig": "tasker.handlers.decisions",
    "Batches": "tasker.handlers.batch_arithmetic",
    "Decision": "tasker.handlers.decisions",
}
"""Names that are imported at their first use, because plain steps do not need them."""

_OF_A_FUNCTION = ("__dict__", "__module__", "__name__", "__qualname__")

F = TypeVar("F", bound=Callable[..., Any])


def __dir__() -> list[str]:
    return sorted({*globals(), *_ELSEWHERE})


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_ELSEWHERE[name]), name)
    return value


@runtime_checkable
class FunctionalHandler(Protocol):
    """A decorated function: still callable, with its handler class attached."""

    _handler_class: type[StepHandler]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself."""
        ...


class HandlerDecorator(Protocol):
    """Decorator that returns the function unchanged."""

    def __call__(self, function: F, /) -> F:
        """Attach the handler class to the function."""
        ...


def _written(example: str) -> Callable[[F], F]:
    """Return a decorator that raises `UsageError` with an example if the wrapped decorator gets invalid arguments."""

    def wrap(decorator: F) -> F:
        signature = inspect.signature(decorator)

        @functools.wraps(decorator)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise UsageError(f"@{decorator.__name__}: {error}", hint=f"write {example}") from None
            return decorator(*args, **kwargs)

        return cast(F, checked)

    return wrap


@_written('@step_handler("my_handler")')
def step_handler(
    name: str, version: str = "1.0.0", *, effect: str | None = None, transaction: str | None = None
) -> HandlerDecorator:
    """Register the function as the handler `name`; its return value or exception becomes the step's result.

    A dict is the result, a pydantic model is dumped, None is an empty result; any other value is stored as
    `{"result": value}`. `PermanentError` ends the step; `RetryableError` and every other exception request another
    attempt. `effect` says what a second execution does: `pure`, `idempotent`, `once` or `transactional`. A
    transactional function gets `context.transaction` as its parameter `transaction`; `transaction` here is the resource
    that opens it, by default Tasker's database.
    """
    if transaction is not None and effect != TRANSACTIONAL:
        raise UsageError(
            f"@step_handler: `transaction` belongs to a transactional handler, and the effect is {effect!r}",
            hint='add effect="transactional"',
        )
    if effect is None:
        return _decorator("step_handler", FunctionHandler, name, version)
    if effect not in EFFECTS:
        raise UsageError(
            f"@step_handler: expected an effect, got {effect!r}", hint=f"write one of: {', '.join(EFFECTS)}"
        )
    return _decorator("step_handler", FunctionHandler, name, version, effect=effect, transaction=transaction)


@_written('@decision_handler("my_handler")')
def decision_handler(name: str, version: str = "1.0.0") -> HandlerDecorator:
    """Register a function that makes a decision: it returns `Decision.route([...])` or `Decision.skip(reason)`."""
    from tasker.handlers.function_kinds import DecisionFunction

    return _decorator("decision_handler", DecisionFunction, name, version)


@_written('@batch_analyzer("my_handler", worker_template="a_batch_worker_step")')
def batch_analyzer(name: str, worker_template: str, version: str = "1.0.0") -> HandlerDecorator:
    """Register a function that splits work into batches.

    It returns a `BatchConfig`; `worker_template` is the name of the template's batch_worker step.
    """
    from tasker.handlers.function_kinds import BatchAnalyzerFunction

    return _decorator("batch_analyzer", BatchAnalyzerFunction, name, version, worker_template=worker_template)


@_written('@batch_worker("my_handler")')
def batch_worker(name: str, version: str = "1.0.0") -> HandlerDecorator:
    """Register a function that processes one batch.

    It gets the batch as `batch_context` (start, end, checkpoint, `checkpoint_yield`).
    """
    from tasker.handlers.function_kinds import BatchWorkerFunction

    return _decorator("batch_worker", BatchWorkerFunction, name, version)


@_written('@batch_aggregator("my_handler", analyzer="a_batchable_step", worker_template="a_batch_worker_step")')
def batch_aggregator(
    name: str, analyzer: str, worker_template: str | tuple[str, type], version: str = "1.0.0"
) -> HandlerDecorator:
    """Register a function that aggregates batches, given as `batches`: a `Batches` with every worker's result.

    `analyzer` names the template's batchable step, `worker_template` its batch_worker. With a model,
    `worker_template=("process_rows", Part)`, each result is validated and `batches` is a `Batches[Part]`; an invalid
    result is a permanent failure.
    """
    from tasker.handlers.function_kinds import BatchAggregatorFunction

    worker, model = (worker_template, None) if isinstance(worker_template, str) else worker_template
    attributes = {"analyzer": analyzer, "worker_template": worker, "model": model}
    return _decorator("batch_aggregator", BatchAggregatorFunction, name, version, **attributes)


@_written('@api_handler("my_handler", base_url="https://example.com")')
def api_handler(
    name: str,
    base_url: str,
    version: str = "1.0.0",
    timeout: float = 30.0,
    default_headers: dict[str, str] | None = None,
) -> HandlerDecorator:
    """Register a function that calls an API through its parameter `api` (`api.get(...)`, `await api.aget(...)`).

    `timeout` is in seconds.
    """
    from tasker.handlers.function_kinds import ApiFunction

    return _decorator(
        "api_handler",
        ApiFunction,
        name,
        version,
        base_url=base_url,
        default_timeout=timeout,
        default_headers=dict(default_headers or {}),
    )


@_written('@depends_on(parameter="a_step_above")')
def depends_on(**deps: str | tuple[str, type]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Fill parameters with the results of dependencies: `cart="validate_cart"`, or `cart=("validate_cart", Cart)`.

    With a model the result is validated; an invalid result is a permanent failure. If a step has no result, the
    parameter gets its default, or None.
    """
    return _declaration("depends_on", "depends_on", {name: _dependency(name, dep) for name, dep in deps.items()})


@_written('@inputs("card", "amount")')
def inputs(*keys_or_model: str | type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Fill parameters with fields of the task's context: `inputs("card", "amount")`.

    `inputs(Model)` fills one parameter `inputs` with the whole context, validated; an invalid context is a permanent
    failure. If a field is missing, the parameter gets its default, or None.
    """
    if any(inspect.isfunction(item) for item in keys_or_model):
        raise UsageError("@inputs needs the names of inputs, or a model", hint='write @inputs("card", "amount")')
    keys = tuple(item for item in keys_or_model if isinstance(item, str))
    models = [item for item in keys_or_model if not isinstance(item, str)]
    if len(models) > 1 or (models and keys):
        raise UsageError("inputs() takes names or one model, not both", hint='inputs("a", "b") or inputs(Model)')
    key, value = ("input_model", models[0]) if models else ("input_keys", keys)
    return _declaration("inputs", key, value)


@_written('@uses(db="orders")')
def uses(**resources: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Fill parameters with resources of the worker: `db="orders"` is the client of `[resources.orders]`.

    Only workers that have the resources take steps with this handler.
    """
    return _declaration("uses", "uses", {name: _resource(name, resource) for name, resource in resources.items()})


def _dependency(parameter: str, given: Any) -> tuple[str, type | None]:
    step, model = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, None)
    if isinstance(step, str):
        return step, model
    raise UsageError(
        f"@depends_on: {parameter} is the name of a step, or that and a model; found {given!r}",
        hint=f'write @depends_on({parameter}="a_step_above")',
    )


def _resource(parameter: str, given: Any) -> str:
    if isinstance(given, str) and given:
        return given
    raise UsageError(
        f"@uses: {parameter} is the name of a resource; found {given!r}",
        hint=f'write @uses({parameter}="a_resource")',
    )


def _decorator(
    decorator: str, base: type[FunctionHandler], name: str, version: str, **attributes: Any
) -> HandlerDecorator:
    _check_name(decorator, name)

    def decorate(function: F, /) -> F:
        _check_function(decorator, name, function)
        function.__dict__["_handler_class"] = handler_class(base, function, name, version, **attributes)
        return function

    return decorate


def _check_name(decorator: str, name: Any) -> None:
    """Raise `UsageError` for a decorator without parentheses, which gets the function instead of the name."""
    if isinstance(name, str) and name.strip():
        return
    meant = getattr(name, "__name__", "my_handler")
    raise UsageError(f"@{decorator} needs the name of the handler", hint=f'write @{decorator}("{meant}")')


def _check_function(decorator: str, name: str, value: Any) -> None:
    """Raise `UsageError` for a value that cannot carry a declaration or lacks a name and a module of its own."""
    if inspect.isclass(value):
        raise _on_a_class(decorator, name, value)
    if not callable(value) or not all(hasattr(value, attribute) for attribute in _OF_A_FUNCTION):
        raise UsageError(
            f"@{decorator} is for functions, and {described(value)} is none",
            hint="write a function with `def` that calls it, and decorate that",
        )


def _on_a_class(decorator: str, name: str, cls: type) -> UsageError:
    return UsageError(
        f"@{decorator} is for functions, and {cls.__name__} is a class",
        hint=f'write class {cls.__name__}(StepHandler), with handler_name = "{name}" and `def call(self, context)`',
    )


def _declaration(decorator: str, key: str, value: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _check_function(decorator, "my_handler", function)
        declare(function, key, value)
        return function

    return decorate
