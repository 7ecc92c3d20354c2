"""A result that is no object is a permanent failure that says what was returned, what is expected and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, RootModel

from tasker.errors import PermanentError
from tasker.handlers.normalize import to_result
from tasker.step_handler import StepHandler, depends_on, step_handler
from tasker.types import StepContext, StepHandlerCallResult, StepHandlerResult
from tests.unit.handlers.support import context


class Returns(StepHandler):
    """Ends with `self.success(value)`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success(self.value)


class Cart(BaseModel):
    total: int


@dataclass
class Order:
    id: int


class Amounts(RootModel[list[int]]):
    pass


class Loose(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    socket: object


class Hidden:
    def __repr__(self) -> str:
        raise ValueError("no text")


def returned(value: Any) -> StepHandlerResult:
    """What a decorated function's result is that returns the value."""

    @step_handler("h")
    def function() -> Any:
        return value

    made: Any = function
    result = made._handler_class().call(context())
    assert isinstance(result, StepHandlerResult)
    return result


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1], 'list ([1]), expected a dict: write success({"result": value})'),
        ((1,), 'tuple ((1,)), expected a dict: write success({"result": value})'),
        (5, "int (5), expected a dict"),
        ("text", "str ('text'), expected a dict"),
        (False, "bool (False), expected a dict"),
        ("", "str (''), expected a dict"),
        ([], "list ([]), expected a dict"),
        (0, "int (0), expected a dict"),
        (Cart(total=1), 'Cart (Cart(total=1)), expected a dict: write success(value.model_dump(mode="json"))'),
        (Order(1), "Order (Order(id=1)), expected a dict: write success(dataclasses.asdict(value))"),
        (Hidden(), "Hidden (Hidden, which cannot be shown: asking it raised ValueError), expected a dict"),
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda value: Returns(value).call(context()),
        StepHandlerResult.success,
        lambda value: StepHandlerCallResult(success=True, result=value),
    ],
    ids=["handler", "result", "older"],
)
def test_a_success_without_an_object_is_refused_where_it_is_made_and_not_tried_again(
    make: Any, value: Any, said: str
) -> None:
    with pytest.raises(PermanentError) as caught:
        make(value)

    assert (caught.value.error_type, caught.value.retryable) == ("invalid_handler_result", False)
    assert str(caught.value).startswith(f"the result of the success is {said}")


def test_metadata_of_a_success_that_is_no_object_is_refused_the_same_way() -> None:
    wrong: Any = [1]
    with pytest.raises(PermanentError, match=r"the metadata of the success is list \(\[1\]\), expected a dict"):
        Returns(None).success({}, wrong)


def test_a_success_without_a_result_is_an_empty_one() -> None:
    assert Returns(None).call(context()).result == {}
    assert Returns({}).call(context()).result == {}


def test_a_model_of_a_list_is_the_value_that_the_next_step_gets() -> None:
    above = returned(Amounts([1, 2]))

    @step_handler("h")
    @depends_on(amounts=("above", Amounts))
    def function(amounts: Amounts) -> int:
        return sum(amounts.root)

    made: Any = function
    assert above.result == {"result": [1, 2]}
    assert made._handler_class().call(context(results={"above": above.result})).result == {"result": 3}


def test_a_model_that_cannot_be_dumped_is_a_permanent_failure_that_names_it() -> None:
    failed = returned(Loose(socket=Hidden()))

    assert (failed.error_type, failed.retryable) == ("invalid_handler_result", False)
    assert str(failed.error_message).startswith("the function returned Loose (")
    assert "which cannot be dumped: Unable to serialize unknown type" in str(failed.error_message)
    assert "return a dict" in str(failed.error_message)


def test_a_returned_object_that_cannot_be_shown_is_a_permanent_failure() -> None:
    failed = to_result(Hidden(), "shop.Charge.call")

    assert (failed.error_type, failed.retryable) == ("invalid_handler_result", False)
    assert str(failed.error_message).startswith("shop.Charge.call returned Hidden (Hidden, which cannot be shown")
