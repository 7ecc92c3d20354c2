from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

import tasker_core.types
from tasker.batch_processing import BatchAggregationScenario
from tasker.errors import PermanentError, RateLimitError, StepExecutionError
from tasker.handlers.normalize import failure_from_exception, failure_from_result, to_result
from tasker.types import ErrorType, StepHandlerCallResult, StepHandlerResult
from tests.unit.handlers.support import context


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
    failure = failure_from_exception(raised(ValueError("amount")))
    assert (failure.error_type, failure.retryable) == ("handler_error", True)
    assert failure.metadata["exception_type"] == "ValueError"
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


class Counted(StepHandlerResult):
    """A result of a program's own, with a field that its validation fills."""

    times: int = 1


@pytest.mark.parametrize(
    ("result", "metadata"),
    [({}, None), ({"a": [1]}, None), ({1: "a"}, {}), ({"a": 1}, {"b": 2}), (Counter("aab"), None)],
)
def test_a_success_is_what_validating_it_makes(result: dict[Any, Any], metadata: dict[str, Any] | None) -> None:
    made = StepHandlerResult.success(result, metadata)
    validated = StepHandlerResult(is_success=True, result=result, metadata=metadata or {})

    assert (made, repr(made), made.model_dump()) == (validated, repr(validated), validated.model_dump())
    assert made.model_fields_set == validated.model_fields_set
    assert vars(made).keys() == vars(validated).keys() == StepHandlerResult.model_fields.keys()
    assert [type(value) for value in vars(made).values()] == [type(value) for value in vars(validated).values()]
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made.model_copy() == validated
    assert made.result is not result, "what the handler does to its own afterwards changes nothing"


@pytest.mark.parametrize("wrong", [42, "text", [("a", 1)]])
def test_a_success_whose_result_is_no_mapping_is_refused_where_it_is_made(wrong: Any) -> None:
    with pytest.raises(PermanentError, match="expected a dict"):
        StepHandlerResult.success(wrong)


def test_a_success_of_a_class_derived_from_results_has_the_fields_of_that_class() -> None:
    assert Counted.success({"a": 1}) == Counted(is_success=True, result={"a": 1}, metadata={}, times=1)


def test_successes_of_right_types_need_no_validator() -> None:
    code = "from tasker.types import StepHandlerResult as R; R.success({'a': 1}); print(R.__pydantic_complete__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False"]


class OwnResult(StepHandlerResult):
    """As authors derive theirs."""


@pytest.mark.parametrize("cls", [StepHandlerResult, OwnResult, tasker_core.types.StepHandlerResult])
def test_success_and_failure_are_constructors_on_the_class_and_answers_on_a_result(cls: Any) -> None:
    good, bad = cls.success({"a": 1}), cls.failure("no")
    assert (type(good), type(bad)) == (cls, cls)
    assert (good.success, good.failure, bad.success, bad.failure) == (True, False, False, True)
    assert (good.result, bad.error_message) == ({"a": 1}, "no")


def test_questions_of_the_published_classes_may_be_read_or_called() -> None:
    def answers(found: Any, *names: str) -> list[bool]:
        assert [bool(getattr(found, name)) for name in names] == [getattr(found, name)() for name in names]
        return [getattr(found, name)() for name in names]

    names = ("is_success_result", "is_failure_result")
    assert answers(StepHandlerResult.success({}), *names) == [True, False]
    assert answers(StepHandlerResult.failure("no"), *names) == [False, True]
    assert answers(context(attempt=1), "is_retry", "is_last_retry", "has_checkpoint") == [False, False, False]
    assert answers(context(attempt=2, checkpoint={"cursor": 1}), "is_retry", "has_checkpoint") == [True, True]
    assert answers(BatchAggregationScenario(False, {}, {}, 1), "no_batches") == [False]
