"""Which errors are retried: by the configuration, the template, the handler and the defaults, in this order."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from tasker.engine.retry import Fail, classified, decide_failure
from tasker.errors import ErrorClassifier, PermanentError, RetryableError
from tasker.handlers.claims import Failure
from tasker.handlers.normalize import failure_from_exception, failure_from_result, result_from_exception
from tasker.handlers.results import StepHandlerResult
from tasker.template.error_rules import ErrorOverride, matching, parse_overrides, parse_rule
from tasker.template.plan import RetryPolicy


class CardError(ValueError):
    """An error of a library."""


def status_error(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "https://example.com")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, request=request))


def failed(error: BaseException) -> Failure:
    return failure_from_exception(error)


def outcome(error: Failure, **policy: Any) -> tuple[bool, str | None]:
    decided = classified(error, RetryPolicy(**policy))
    return decided.retryable, decided.why


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        (404, "404"),
        ("404", "404"),
        ("4XX", "4xx"),
        ("SQLSTATE 23", "sqlstate:23"),
        ("sqlstate:40p01", "sqlstate:40P01"),
    ],
)
def test_a_rule_has_one_spelling(written: object, rule: str) -> None:
    assert parse_rule(written) == parse_rule(rule) == rule


@pytest.mark.parametrize("written", [42, 600, "4x", "sqlstate:4", "sqlstate", "", "a b", True, None, ["x"], 4.5])
def test_what_names_no_error_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_rule(written)


@pytest.mark.parametrize(
    ("error", "rules"),
    [
        (failed(CardError("x")), ["CardError", f"{__name__}.CardError", "ValueError", "handler_error"]),
        (failed(status_error(404)), ["404", "4xx", "HTTPStatusError", "httpx.HTTPStatusError", "HTTPError"]),
        (failed(psycopg.errors.UniqueViolation("x")), ["sqlstate:23", "sqlstate:23505", "IntegrityError"]),
        (Failure("no", "gateway", True, error_code="card_declined"), ["gateway", "card_declined"]),
        (failure_from_result(StepHandlerResult.failure("no", metadata={"status_code": 503})), ["503", "5xx"]),
        (failure_from_result(result_from_exception(CardError("x"))), ["CardError"]),
    ],
)
def test_an_error_is_named_by_class_code_status_and_sqlstate(error: Failure, rules: list[str]) -> None:
    assert [rule for rule in rules if matching([rule], error) is None] == []
    assert matching(["OSError", "400", "5x", "sqlstate:40", "card"], error) is None


@pytest.mark.parametrize("error", [TypeError("x"), KeyError("x"), AttributeError("x"), ModuleNotFoundError("x")])
def test_a_programming_error_is_permanent_and_says_why(error: Exception) -> None:
    decision = decide_failure(RetryPolicy(), 1, failed(error), 0.5)

    name = type(error).__name__
    assert isinstance(decision, Fail)
    assert decision.message == f"a {name} is a programming error; `retry: {{only_on: [{name}]}}` retries it"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (404, False), (408, True), (425, True), (429, True), (499, False), (500, True)],
)
def test_a_status_of_httpx_decides(status: int, retryable: bool) -> None:
    assert failed(status_error(status)).retryable is retryable


@pytest.mark.parametrize("error", [ConnectionError("x"), ValueError("x"), OSError("x"), RuntimeError("x")])
def test_all_other_errors_are_retried(error: Exception) -> None:
    assert outcome(failed(error)) == (True, None)


def test_a_template_makes_errors_permanent() -> None:
    assert outcome(failed(CardError("x")), never_on=("ValueError",)) == (False, "retry.never_on names ValueError")
    assert outcome(failed(RetryableError("x")), never_on=("RetryableError",))[0] is False


def test_a_template_names_the_only_errors_that_are_retried() -> None:
    assert outcome(failed(OSError("x")), only_on=("ConnectionError",)) == (False, "retry.only_on does not name it")
    assert outcome(failed(ConnectionResetError("x")), only_on=("ConnectionError",)) == (True, None)


def test_only_on_overrides_a_default_and_not_what_the_handler_says() -> None:
    assert outcome(failed(KeyError("x")), only_on=("LookupError",)) == (True, "retry.only_on names LookupError")
    assert outcome(failed(status_error(404)), only_on=("404",))[0] is True
    assert outcome(failed(PermanentError("x")), only_on=("PermanentError",))[0] is False


def test_a_lost_worker_is_no_error_of_the_handler() -> None:
    assert outcome(Failure("gone", "worker_lost", True), only_on=("ConnectionError",)) == (True, None)


@pytest.mark.parametrize("retry", [True, False])
def test_the_configuration_overrides_template_and_handler(retry: bool) -> None:
    policy = RetryPolicy(never_on=("CardError",)) if retry else RetryPolicy(only_on=("CardError",))

    decided = classified(
        failed(CardError("x")), policy, [ErrorOverride("OSError", not retry), ErrorOverride("CardError", retry)]
    )

    assert decided.retryable is retry
    assert decided.why == f"the configuration {'retries' if retry else 'never retries'} CardError"


def test_a_classifier_of_a_package_may_retry_a_programming_error() -> None:
    class Patient(ErrorClassifier):
        RETRYABLE_ERROR_CLASSES = (*ErrorClassifier.RETRYABLE_ERROR_CLASSES, KeyError)

    failure = failure_from_exception(KeyError("x"), Patient())

    assert (failure.retryable, failure.why) == (True, None)


def test_an_exception_whose_fields_raise_is_still_a_failure() -> None:
    class Hostile(RuntimeError):
        @property
        def response(self) -> Any:
            raise SystemError("no")

    assert failed(Hostile("x")).http_status is None


def test_a_line_of_the_configuration_names_a_namespace_or_template_and_errors() -> None:
    assert parse_overrides("payments never card_declined 4XX") == (
        ErrorOverride("card_declined", False, "payments"),
        ErrorOverride("4xx", False, "payments"),
    )
    (override,) = parse_overrides("payments/charge retry KeyError")
    assert (override.retry, override.template) == (True, "charge")
    assert [override.applies_to("payments", name) for name in ("charge", "refund")] == [True, False]
    assert parse_overrides("* never sqlstate:42")[0].applies_to("shop", "any")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "Names no namespace"),
        ("never KeyError", "Names no namespace"),
        ("payments/ never 404", "Names no namespace"),
        ("payments KeyError", "Expected never or retry after payments, got 'KeyError'"),
        ("payments", "Expected never or retry after payments, got ''"),
        ("payments never", "Names no error"),
        ("payments never 42", "expected an HTTP status"),
    ],
)
def test_a_line_that_is_no_rule_says_why(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_overrides(line)
