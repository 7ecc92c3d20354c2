from __future__ import annotations

from typing import Any

import pytest

from tasker.errors import PermanentError, RateLimitError, StepExecutionError
from tasker.step_handler.outcome import failure_from_exception, failure_from_result, to_result
from tasker.types import ErrorType, StepHandlerCallResult, StepHandlerResult


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_a_result_passes_untouched() -> None:
    result = StepHandlerResult.success({"a": 1})
    assert to_result(result) is result


def test_the_older_result_is_converted() -> None:
    assert to_result(StepHandlerCallResult(success=True, result={"a": 1})) == StepHandlerResult.success({"a": 1})
    failed = to_result(StepHandlerCallResult(success=False, error_message="no"))
    assert (failed.is_success, failed.error_message, failed.retryable) == (False, "no", True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "returned None, expected a StepHandlerResult: end with `return self.success({...})`"),
        ({"a": 1}, "returned dict ({'a': 1}), expected a StepHandlerResult: write `return self.success(result)`"),
        (42, "returned int (42), expected a StepHandlerResult"),
    ],
)
def test_a_wrong_return_type_is_a_permanent_failure_that_explains_itself(value: Any, said: str) -> None:
    result = to_result(value, "shop.Charge.call")
    assert result.is_failure_result()
    assert result.retryable is False
    assert result.error_type == "invalid_handler_result"
    assert result.error_message is not None
    assert result.error_message.startswith(f"shop.Charge.call {said}")


def test_a_forgotten_await_is_named() -> None:
    async def work() -> None: ...

    assert "declare it with `async def`" in str(to_result(work()).error_message)


def test_an_error_raised_on_purpose_keeps_everything_it_said() -> None:
    error = RateLimitError("slow down", error_code="R1", retry_after=30, metadata={"limit": 5}, context={"card": "x"})
    failure = failure_from_exception(raised(error), handler="shop.Charge")
    assert (failure.message, failure.error_type, failure.retryable) == ("slow down", "rate_limit_error", True)
    assert (failure.error_code, failure.retry_after, failure.handler) == ("R1", 30.0, "shop.Charge")
    assert failure.metadata["limit"] == 5
    assert failure.metadata["card"] == "x"


def test_raising_a_step_execution_error_equals_returning_that_failure() -> None:
    failure = failure_from_exception(raised(StepExecutionError("no", "gateway", False)))
    assert (failure.error_type, failure.retryable) == ("gateway", False)


def test_any_other_exception_is_retryable_and_leaves_its_trace() -> None:
    failure = failure_from_exception(raised(KeyError("amount")))
    assert (failure.error_type, failure.retryable) == ("handler_error", True)
    assert failure.metadata["exception_type"] == "KeyError"
    assert "test_outcome.py" in failure.metadata["traceback"]


def test_a_long_traceback_is_cut_at_its_beginning() -> None:
    trace = failure_from_exception(raised(ValueError("x" * 10_000))).metadata["traceback"]
    assert len(trace) == 4000


def test_a_failed_result_keeps_the_delay_it_asks_for() -> None:
    result = StepHandlerResult.failure("busy", ErrorType.TIMEOUT, metadata={"retry_after": 12}, error_code="T")
    failure = failure_from_result(result, "h")
    assert (failure.retry_after, failure.error_type, failure.error_code) == (12.0, "timeout", "T")


@pytest.mark.parametrize("nonsense", ["soon", True, float("nan"), -1])
def test_a_delay_that_is_no_delay_is_ignored(nonsense: Any) -> None:
    assert (
        failure_from_result(StepHandlerResult.failure("busy", metadata={"retry_after": nonsense})).retry_after is None
    )


def test_a_permanent_error_ends_the_step() -> None:
    assert failure_from_exception(PermanentError("gone")).retryable is False


def test_a_result_is_never_falsy() -> None:
    assert bool(StepHandlerResult.success({})) is True


def test_the_flag_may_be_spelled_success() -> None:
    assert StepHandlerResult.model_validate({"success": False}).is_success is False


def test_error_types_know_what_they_are() -> None:
    assert ErrorType.is_standard("timeout")
    assert not ErrorType.is_standard("card_declined")
    assert ErrorType.is_typically_retryable("timeout")
    assert not ErrorType.is_typically_retryable("validation_error")
