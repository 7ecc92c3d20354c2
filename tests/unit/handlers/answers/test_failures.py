"""A failure keeps what it says of itself, whatever its fields hold: building it raises nothing."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from tasker.errors import PermanentError, TaskerError
from tasker.handlers.normalize import failure_from_exception, failure_from_result, result_from_exception
from tasker.step_handler import step_handler
from tasker.types import StepHandlerResult


class Code(Enum):
    GONE = 410


class Hidden:
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class WithoutSuper(PermanentError):
    """An error that forgot `super().__init__(...)`."""

    def __init__(self, order: int) -> None:
        self.order = order


def with_fields(**fields: Any) -> TaskerError:
    error = PermanentError("there is no such order")
    for name, value in fields.items():
        setattr(error, name, value)
    return error


FAILED_BY: list[Callable[[Any], StepHandlerResult]] = [
    lambda code: StepHandlerResult.failure("there is no such order", "not_found", False, None, code),
    lambda code: result_from_exception(PermanentError("there is no such order", error_code=code)),
]


@pytest.mark.parametrize("fail", FAILED_BY, ids=["returned", "raised"])
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (404, "404"),
        (Code.GONE, "410"),
        ("E1", "E1"),
        (None, None),
        (10**6000, "int, which cannot be shown: asking it raised ValueError"),
        (Hidden(), "Hidden, which cannot be shown: asking it raised ValueError"),
    ],
    ids=["number", "enumerated", "text", "none", "huge", "hidden"],
)
def test_an_error_code_of_any_type_is_text_and_a_permanent_failure_stays_one(
    fail: Callable[[Any], StepHandlerResult], code: Any, text: str | None
) -> None:
    failed = fail(code)

    assert (failed.retryable, failed.error_message, failed.error_code) == (False, "there is no such order", text)


@pytest.mark.parametrize(
    "fields",
    [
        {"error_code": 404},
        {"error_type": 404},
        {"metadata": ["not", "a", "mapping"]},
        {"context": None},
        {"retry_after": 10**400},
        {"hint": Hidden()},
        {"retryable": 0},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_permanent_error_with_an_odd_field_ends_the_step_of_a_decorated_function(fields: dict[str, Any]) -> None:
    @step_handler("h")
    def function() -> None:
        raise with_fields(**fields)

    made: Any = function
    failed = made._handler_class().call(None)

    assert (failed.error_message, failed.retryable) == ("there is no such order", False)
    assert failed.metadata["exception_type"] == "PermanentError"


def test_an_error_that_forgot_to_call_its_base_says_itself_that_it_is_permanent() -> None:
    failure = failure_from_exception(WithoutSuper(5))

    assert (failure.retryable, failure.error_type, failure.error_code) == (False, "permanent_error", None)
    assert failure.message == "5"


def test_metadata_that_is_no_mapping_is_kept_as_text() -> None:
    returned: Any = ["ab", "cd"]

    assert StepHandlerResult.failure("no", metadata=returned).metadata == {"metadata": "['ab', 'cd']"}
    assert failure_from_exception(with_fields(metadata=returned)).metadata["metadata"] == "['ab', 'cd']"


def test_a_failure_may_be_made_of_the_exception_that_was_caught() -> None:
    caught: Any = KeyError("amount")

    assert StepHandlerResult.failure(caught).error_message == "'amount'"


class Unclear:
    def __bool__(self) -> bool:
        raise ValueError("neither")


@pytest.mark.parametrize(
    ("said", "retryable"), [(0, False), ("no", False), ("false", False), ("yes", True), (None, True), (Unclear(), True)]
)
def test_whatever_says_whether_a_failure_is_tried_again_is_read(said: Any, retryable: bool) -> None:
    assert StepHandlerResult.failure("no", retryable=said).retryable is retryable


def test_a_delay_too_large_for_a_number_is_ignored() -> None:
    assert failure_from_result(StepHandlerResult.failure("busy", metadata={"retry_after": 10**400})).retry_after is None


class Mute(PermanentError):
    __str__ = Hidden.__str__


class MuteBySurprise(ValueError):
    __str__ = Hidden.__str__


@pytest.mark.parametrize(("error", "retryable"), [(Mute("x"), False), (MuteBySurprise("x"), True)])
def test_an_exception_that_cannot_be_shown_is_told_with_its_class_and_is_tried_again_as_it_says(
    error: Exception, retryable: bool
) -> None:
    @step_handler("h")
    def function() -> None:
        raise error

    made: Any = function
    failed = made._handler_class().call(None)

    kind = type(error).__name__
    assert failed.error_message == f"{kind}, which cannot be shown: asking it raised ValueError"
    assert (failed.retryable, failed.metadata["exception_type"]) == (retryable, kind)
