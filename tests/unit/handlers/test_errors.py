from __future__ import annotations

import inspect
import pickle

import pytest

import tasker.errors as errors
from tasker.errors import ErrorClassifier, MissingCallable, TaskerError
from tests.support.tables import for_each

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, TaskerError)]


@for_each(CLASSES)
def test_every_error_says_what_happened_and_what_to_do(cls: type[TaskerError]) -> None:
    error = cls("it broke", hint="mend it")
    assert str(error) == "it broke"
    assert error.to_dict() == {
        "error_class": cls.__name__,
        "error_type": error.error_type,
        "message": "it broke",
        "retryable": cls.retryable,
        "hint": "mend it",
    }


@for_each(CLASSES)
def test_every_error_survives_the_way_to_another_process(cls: type[TaskerError]) -> None:
    error = cls("it broke", error_code="E1", retry_after=3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert again.to_dict() == error.to_dict()


def test_an_instance_may_overrule_its_class() -> None:
    assert errors.PermanentError("for now", retryable=True).retryable is True
    assert errors.PermanentError("for good").retryable is False


def test_details_appear_in_the_plain_form() -> None:
    missing = MissingCallable("charge", "chrage", ("charge",))
    assert errors.HandlerNotFound("none", missing=[missing]).to_dict()["missing"] == [
        {"step": "charge", "callable": "chrage", "suggestions": ("charge",)}
    ]
    assert errors.CycleDetected("a cycle", cycle=["a", "b", "a"]).to_dict()["cycle"] == ["a", "b", "a"]
    assert errors.InputInvalid("bad", problems=["amount: missing"]).to_dict()["problems"] == ["amount: missing"]


def test_a_duplicate_task_keeps_its_id_to_itself() -> None:
    error = errors.DuplicateTask("exists", task_uuid="0190")
    assert error.task_uuid == "0190"
    assert "0190" not in str(error.to_dict())


@pytest.mark.parametrize(
    ("error", "retryable", "error_type"),
    [
        (errors.RateLimitError("slow down"), True, "rate_limit_error"),
        (errors.ValidationError("wrong"), False, "validation_error"),
        (errors.StepExecutionError("no", "gateway_timeout", False), False, "gateway_timeout"),
        (TimeoutError("late"), True, "timeout"),
        (ValueError("x"), True, "handler_error"),
        (KeyError("x"), False, "handler_error"),
        (ModuleNotFoundError("x"), False, "handler_error"),
    ],
)
def test_the_classifier_sorts_exceptions(error: Exception, retryable: bool, error_type: str) -> None:
    assert errors.get_classifier().classify(error) == {
        "retryable": retryable,
        "permanent": not retryable,
        "error_type": error_type,
        "error_class": type(error).__name__,
    }
    assert errors.is_retryable(error) is retryable
    assert errors.is_permanent(error) is not retryable


def test_a_strict_classifier_retries_only_what_it_knows() -> None:
    strict = ErrorClassifier(default_retryable=False)
    assert strict.retryable(ConnectionResetError()) is True
    assert strict.retryable(KeyError("x")) is False


def test_a_classifier_learns_the_exceptions_of_a_library() -> None:
    class Mine(ErrorClassifier):
        PERMANENT_ERROR_CLASSES = (*ErrorClassifier.PERMANENT_ERROR_CLASSES, ZeroDivisionError)

    assert Mine().permanent(ZeroDivisionError()) is True
