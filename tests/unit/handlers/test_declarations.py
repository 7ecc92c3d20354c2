"""What a decorator cannot work with is told before the first run, with what to write."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tasker.errors import DeclarationMismatch, UsageError
from tasker.handlers.decorators import batch_worker, depends_on, inputs, step_handler


def declared_wrongly_as_an_input() -> Any:
    @step_handler("h")
    @inputs("nmae")
    def function(name: str) -> Any:
        return name

    return function


def declared_wrongly_as_a_result() -> Any:
    @step_handler("h")
    @depends_on(nmae="validate")
    def function(name: str) -> Any:
        return name

    return function


def declared_wrongly_beside_a_default() -> Any:
    @step_handler("h")
    @inputs("nmae")
    def function(name: str = "x") -> Any:
        return name

    return function


@pytest.mark.parametrize(
    ("function", "decorator"),
    [
        (declared_wrongly_as_an_input(), "@inputs"),
        (declared_wrongly_as_a_result(), "@depends_on"),
        (declared_wrongly_beside_a_default(), "@inputs"),
    ],
    ids=["input", "result", "default"],
)
def test_a_declaration_that_misses_its_parameter_by_a_letter_is_told_with_both_names(
    function: Any, decorator: str
) -> None:
    with pytest.raises(DeclarationMismatch) as caught:
        function._handler_class()
    assert caught.value.hint == f"did you mean 'name'? {decorator} says 'nmae', which is no parameter"


def test_what_looks_like_nothing_that_is_declared_is_not_guessed() -> None:
    @step_handler("h")
    @inputs("amount")
    def function(amount: int, cart: Any) -> Any:
        return amount, cart

    with pytest.raises(DeclarationMismatch) as caught:
        function._handler_class()
    assert str(caught.value.hint).startswith('add @inputs("cart")')


def by_position(amount: int, /) -> int:
    return amount


def all_the_rest(*amount: int) -> Any:
    return amount


@pytest.mark.parametrize(
    ("function", "kind"), [(by_position, "positional-only"), (all_the_rest, "variadic positional")]
)
def test_a_parameter_that_cannot_be_given_by_name_is_a_mismatch_before_the_first_run(
    function: Callable[..., Any], kind: str
) -> None:
    handler: Any = step_handler("h")(inputs("amount")(function))

    with pytest.raises(DeclarationMismatch, match=f"the parameter 'amount' is {kind}") as caught:
        handler._handler_class()
    assert "test_declarations.py:" in str(caught.value)
    assert "are given by name" in str(caught.value.hint)


def test_the_context_by_position_alone_is_a_mismatch_too() -> None:
    @step_handler("h")
    def function(context: Any, /) -> Any:
        return context

    made: Any = function
    with pytest.raises(DeclarationMismatch, match="'context' is positional-only"):
        made._handler_class()


def test_a_parameter_by_position_that_nothing_fills_keeps_its_default() -> None:
    @step_handler("h")
    def function(amount: int = 5, /) -> int:
        return amount

    made: Any = function
    assert made._handler_class().call(None).result == {"result": 5}


class CalledLikeOne:
    def __call__(self, amount: int) -> int:
        return amount


NO_FUNCTIONS: list[Any] = [functools.partial(by_position, 1), CalledLikeOne(), len, classmethod(by_position), None]


@pytest.mark.parametrize("decorator", [step_handler("h"), batch_worker("h"), inputs("amount"), depends_on(amount="a")])
@pytest.mark.parametrize("wrong", NO_FUNCTIONS, ids=["partial", "callable object", "builtin", "classmethod", "nothing"])
def test_what_is_no_function_is_refused_where_it_is_decorated(decorator: Any, wrong: Any) -> None:
    with pytest.raises(
        UsageError, match=r"^@(step_handler|batch_worker|inputs|depends_on) is for functions, "
    ) as caught:
        decorator(wrong)
    assert ("None" if wrong is None else type(wrong).__name__) in str(caught.value)
    assert "write a function with `def` that calls it" in str(caught.value.hint)


@pytest.mark.parametrize("decorator", [step_handler("h"), inputs("amount"), depends_on(amount="a")])
def test_a_class_under_a_decorator_is_told_how_a_class_is_a_handler(decorator: Any) -> None:
    with pytest.raises(UsageError, match="is for functions, and CalledLikeOne is a class") as caught:
        decorator(CalledLikeOne)
    assert "class CalledLikeOne(StepHandler)" in str(caught.value.hint)


def test_a_function_in_a_wrapper_that_has_its_name_may_be_decorated() -> None:
    @functools.lru_cache
    def function() -> int:
        return 5

    handler: Any = step_handler("h")(function)
    assert handler._handler_class().call(None).result == {"result": 5}
