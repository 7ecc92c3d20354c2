"""A name that `@inputs` or `@depends_on` misspells is told with the parameter that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.errors import DeclarationMismatch
from tasker.step_handler.functional import depends_on, inputs, step_handler


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
